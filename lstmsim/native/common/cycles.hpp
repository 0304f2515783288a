// Numbers that stand for cycles and for nothing.
#pragma once

#include "array.hpp"

namespace lstmsim {

/// Later than any cycle: the end of a wait that is not known yet, or the next issue of a stream that is at its end.
constexpr i64 NEVER = i64{1} << 60;
/// The last cycle that a run may reach: two of them together come before `NEVER`, and one more cycle does.
constexpr i64 LATEST = (i64{1} << 59) - 1;
/// In place of a number of something: there is none.
constexpr i64 NONE = -1;

}  // namespace lstmsim
