#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Text forms of arbitrary bytes for launch protocols whose values hold neither spaces nor newlines.
namespace heddle::sys::bootstrap {

/// Base 64 with the letters `A-Z a-z 0-9 - _`, no padding: 4 characters for 3 bytes.
std::string encode_base64(std::string_view bytes);

/// The reverse; empty for text that `encode_base64` cannot have made.
std::optional<std::string> decode_base64(std::string_view text);

/// `%XX` for every byte but letters, digits and `- _ . : / # $ + @ ,`: readable names stay readable.
std::string encode_percent(std::string_view bytes);

/// The reverse; a `%` without two hexadecimal digits stands for itself (a foreign publisher wrote it).
std::string decode_percent(std::string_view text);

}  // namespace heddle::sys::bootstrap
