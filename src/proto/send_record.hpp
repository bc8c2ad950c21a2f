// How modules above point-to-point send their records.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/address.hpp"
#include "transport/record.hpp"
#include "vci/vci.hpp"

namespace heddle {

inline constexpr std::size_t largest_small_payload = 64;  ///< bytes

/// Sends a record with a small payload to `lane` of a process, this one or another, by whatever leads there, behind what this VCI has sent it
/// before. Ends the job where there is no way. \param bytes at most largest_small_payload
void send_record(VciGuard& guard, ProcessIndex to, Lane lane, const RecordHead& head, const void* payload, std::uint32_t bytes) noexcept;

}  // namespace heddle
