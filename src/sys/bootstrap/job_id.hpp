#pragma once

#include <string>
#include <string_view>

namespace heddle::sys::bootstrap {

/// 128 random bits as 32 hexadecimal digits: a name for a job that no other job has.
std::string random_job_id();

/// A launcher's name for a job as Bootstrap::job_id: its first 64 characters, '_' for what a file name should not hold.
std::string file_name_part(std::string_view text);

}  // namespace heddle::sys::bootstrap
