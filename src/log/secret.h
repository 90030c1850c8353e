// Secret: a text that must not be shown: a key, a token, a password.
//
// It converts to nothing, compares with nothing and has no output operator, so that it reaches a
// log, a message or an answer only where somebody writes Reveal(), which can be searched for. The
// memory is wiped at the end. Move-only.
#pragma once

#include <string.h>

#include <string>
#include <string_view>
#include <utility>

namespace caisson::log {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  ~Secret() { Wipe(); }
  // The bytes of a short string stay behind in a moved-from one: the source is wiped as well.
  Secret(Secret&& other) noexcept : text_(other.text_) { other.Wipe(); }
  Secret& operator=(Secret&& other) noexcept {
    if (this == &other) return *this;
    Wipe();
    text_ = other.text_;
    other.Wipe();
    return *this;
  }

  std::string_view Reveal() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  void Wipe() {
    explicit_bzero(text_.data(), text_.size());
    text_.clear();
  }

  std::string text_;
};

}  // namespace caisson::log
