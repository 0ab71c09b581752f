// Points at which a test build can be told to die or to stop, so that a test can kill a rank at an
// exact step. WEIGHTCAST_FAULT=`point:action[:count]`, action `kill` or `stop`, at the count-th
// passage (1 if absent). Release builds contain none of this.
#pragma once

namespace weightcast {

#ifdef WEIGHTCAST_FAULT_POINTS
/// SIGKILLs or SIGSTOPs this process if WEIGHTCAST_FAULT names `point`.
void fault_point(const char* point);
#else
inline void fault_point(const char*) {}
#endif

}  // namespace weightcast
