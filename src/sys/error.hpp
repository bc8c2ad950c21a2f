// Error codes that carry a text, and the one place where an error reaches the user's error handler.
#pragma once

#include <mpi.h>

namespace heddle {

/// Makes an error code of `error_class` whose text (MPI_Error_string) is the formatted message.
///
/// The message names the thing and the remedy: rank, communicator, tag, both sizes where they matter.
/// The code is `0x40000000 | sequence << 7 | class`; the newest 256 texts are kept, an older code falls back to the text
/// of its class. Thread-safe; cold.
[[gnu::cold, gnu::format(printf, 2, 3)]] int error(int error_class, const char* format, ...) noexcept;

/// The error class of a code made by `error`, a plain class, or a user-added code. \see MPI_Error_class
int error_class(int code) noexcept;

/// Writes the text of `code` to `text` (at most MPI_MAX_ERROR_STRING bytes with the terminator); returns its length.
int error_text(int code, char* text) noexcept;

/// The standard's name of a predefined class ("MPI_ERR_RANK"), or nullptr.
const char* error_class_name(int error_class) noexcept;

/// True for MPI_SUCCESS, predefined classes, codes made by `error` and what the program added and has not removed.
bool is_error_code(int code) noexcept;

/// Classes, codes and texts that the program adds. Thread-safe, callable at any time. Return an error code.
/// \see MPI-5.0 §9.5
int add_error_class(int* new_class) noexcept;
int add_error_code(int of_class, int* new_code) noexcept;
int add_error_string(int code, const char* text) noexcept;
int remove_error_class(int old_class) noexcept;
int remove_error_code(int code) noexcept;
int remove_error_string(int code) noexcept;
/// The value of MPI_LASTUSEDCODE.
int last_used_code() noexcept;

/// The code of a function whose chapter is not built.
[[gnu::cold]] int unsupported(const char* function) noexcept;

}  // namespace heddle
