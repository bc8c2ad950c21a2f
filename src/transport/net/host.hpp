// What the network needs of the layer that owns its engines.
#pragma once

#include <type_traits>

#include "transport/address.hpp"
#include "transport/holder.hpp"

namespace heddle::net {

class Engine;

/// One for the process. The library's is in vci/network.cpp.
class Host {
 public:
  /// Calls `visit(held, engine)` for each engine with its VCI held. \param wait false: not for those that somebody else holds now
  template <typename Visit>
  void for_each_engine(bool wait, Visit&& visit) noexcept {
    visit_engines(wait, [](void* context, Held& held, Engine& engine) noexcept { (*static_cast<std::remove_reference_t<Visit>*>(context))(held, engine); }, &visit);
  }
  /// Whether any engine has gathered messages, be its VCI held by somebody or not.
  virtual bool has_gathered() noexcept = 0;
  /// The engine behind a lane of this process, opened on first use. Its VCI need not be held.
  virtual Engine& engine_of(Lane lane) noexcept = 0;
  /// There is something to do for the holder's VCI, and the caller may not come back soon: somebody asleep is to do it.
  virtual void leave_work(Held& held) noexcept = 0;
  /// Something was completed that threads may wait for.
  virtual void wake_sleepers(Held& held) noexcept = 0;
  /// Whether the holder's VCI keeps so much that nobody has asked for that peers are to keep the rest.
  virtual bool holds_back(Held& held) noexcept = 0;

 protected:
  Host() = default;
  ~Host() = default;
  using Visitor = void (*)(void* context, Held& held, Engine& engine) noexcept;
  virtual void visit_engines(bool wait, Visitor visit, void* context) noexcept = 0;
};

}  // namespace heddle::net
