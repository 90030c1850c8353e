// LeaveKeys: finds Ctrl-P Ctrl-Q in what is typed, by which one leaves a command to itself.
#pragma once

#include <string>
#include <string_view>

namespace caisson::cli {

class LeaveKeys {
 public:
  struct Passed {
    std::string bytes;  // for the command
    bool leave = false;
  };
  // A Ctrl-P waits for the key after it, in this call or the next one. What follows the two keys is
  // dropped.
  Passed Take(std::string_view typed) {
    constexpr char kCtrlP = 0x10, kCtrlQ = 0x11;
    Passed passed;
    for (const char key : typed) {
      if (waiting_ && key == kCtrlQ) {
        passed.leave = true;
        return passed;
      }
      if (waiting_) passed.bytes += kCtrlP;
      waiting_ = key == kCtrlP;
      if (!waiting_) passed.bytes += key;
    }
    return passed;
  }

 private:
  bool waiting_ = false;
};

}  // namespace caisson::cli
