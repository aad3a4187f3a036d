#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace cairn {

// A thread of this process, as the kernel counts them. 0: none.
using ThreadId = int64_t;
ThreadId CurrentThreadId();

// Where a thread is right now, innermost function first, one line each: "name+0xoffset", or an address where there is no symbol.
//
// It is collected in that thread itself, by a handler of SIGURG, which the thread gets even while it hangs in the kernel or waits for a
// lock: a system call that is cut short by that is begun again, or answers EINTR, which all our callers know. The handler allocates
// nothing and takes no lock: it walks the unwind tables (libc has no frame pointers), which were loaded beforehand, into memory that is
// there already; names are looked up afterwards by the caller's thread. Empty if the thread is gone, or does not come to its handler
// within `patience` (it sleeps where no signal reaches it: a disk that does not answer). One at a time; others wait. Thread-safe; blocks.
std::vector<std::string> StackOfThread(ThreadId thread, absl::Duration patience = absl::Milliseconds(500));

// Once, early in main(), for the names of the executable's own functions.
void InitializeStackNames(const char* argv0);

}  // namespace cairn
