// SHA-256 (FIPS 180-4), for naming content. Not constant-time with respect to anything secret.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace caisson {

class Sha256 {
 public:
  enum class Engine {
    kFastest,
    kPortable
  };  // kFastest: the processor's instructions where it has them
  explicit Sha256(Engine engine = Engine::kFastest);

  void Update(std::string_view bytes);
  // The digest of everything given so far, as 64 lower-case hex digits. Ends the computation.
  std::string HexDigest();

 private:
  using BlockFunction = void (*)(std::array<uint32_t, 8>& state, const unsigned char* data,
                                 size_t blocks);

  BlockFunction blocks_;
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  size_t pending_size_ = 0;
  uint64_t total_ = 0;
};

}  // namespace caisson
