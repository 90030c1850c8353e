#include "net/body.h"

#include "base/text.h"

namespace caisson::net {

Error BodyTooLarge(uint64_t limit) {
  return Error(ErrorCode::kTooLarge,
               Concat({"the body is larger than the limit of ", std::to_string(limit), " bytes"}))
      .WithRemedy("send less at once");
}

Task<Result<std::string>> BodyReader::ReadAll(size_t limit) {
  std::string all;
  if (const auto announced = content_length()) {
    if (*announced > limit) co_return BodyTooLarge(limit);
    all.reserve(*announced);
  }
  while (true) {
    CAISSON_CO_ASSIGN(std::string piece, co_await Next());
    if (piece.empty()) co_return std::move(all);
    if (piece.size() > limit - all.size()) co_return BodyTooLarge(limit);
    if (all.empty() && piece.size() >= all.capacity()) {
      all = std::move(piece);
    } else {
      all += piece;
    }
  }
}

}  // namespace caisson::net
