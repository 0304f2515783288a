// What goes wrong in a library: whoever asked made a mistake, a number grew too large, or the library is wrong.
#pragma once

#include <stdexcept>

namespace lstmsim {

/// What a library is given breaks a rule.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A run that has to be given up: a number would be too large for 64 bits.
struct Overrun : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A mistake in the library itself. It is thrown where a program in another form would read or write outside an array.
struct Fault : std::logic_error {
    using std::logic_error::logic_error;
};

}  // namespace lstmsim
