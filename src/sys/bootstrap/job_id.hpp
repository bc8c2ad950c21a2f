#pragma once

#include <string>

namespace heddle::sys::bootstrap {

/// 128 random bits as 32 hexadecimal digits: a name for a job that no other job has.
std::string random_job_id();

}  // namespace heddle::sys::bootstrap
