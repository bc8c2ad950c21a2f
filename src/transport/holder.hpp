// Proof that the caller holds a VCI, for code below the VCIs.
#pragma once

namespace heddle {

/// Part of every VciGuard. The transport asks for it where the VCI must be held, and hands it back to whom it calls. \see vci/vci.hpp
struct Held {
 protected:
  Held() = default;
  ~Held() = default;
};

}  // namespace heddle
