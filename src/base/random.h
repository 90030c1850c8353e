// Randomness for secrets and ids, from the kernel (getrandom(2)). Thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace caisson {

// `size` bytes. Ends the process when the kernel gives none: nothing goes on with a guessable
// secret.
std::string RandomBytes(size_t size);

uint64_t RandomNumber();

// `size` letters and digits, each of the 62 equally likely: 5.95 bits per character.
std::string RandomBase62(size_t size);

}  // namespace caisson
