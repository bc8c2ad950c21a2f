#pragma once
namespace heddle { inline bool acquire_server() noexcept { return true; } inline void release_server() noexcept {} }
