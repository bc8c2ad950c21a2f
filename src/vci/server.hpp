// The server: the library's thread that makes progress while no thread of the program does. docs/design/core.md, The server
#pragma once

namespace heddle {

/// From now on what comes for this process is served though all of its threads compute, sleep or wait for something else: within some 50 µs
/// once they have been away for a while, and within a millisecond after they were last seen in the library (8 ms over a network that cannot wake
/// anybody). What may call functions of the program (user-defined reductions of nonblocking collectives) stays for the program's threads.
///
/// The first use starts the thread, for which VCIs are locked from then on. False, with errno set, where it cannot be started: nothing is acquired.
/// \pre the library is up; the caller holds no VCI and, below MPI_THREAD_MULTIPLE, is the only thread inside the library. Thread-safe otherwise.
bool acquire_server() noexcept;
/// Gives one use back; the last one ends the thread, and returns when it is gone. \pre the caller holds no VCI. Thread-safe.
void release_server() noexcept;

/// At the beginning of a life of the library: the use that HEDDLE_PROGRESS=thread asks for. A notice where it
/// cannot be. \pre as for `acquire_server`
void start_server_if_wanted() noexcept;
/// At the end of one: ends the thread, whoever may still use it. \pre as for `release_server`
void end_server() noexcept;

}  // namespace heddle
