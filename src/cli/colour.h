// Whether text is coloured.
#pragma once

namespace caisson::cli {

enum class Colour { kNo, kYes };

}  // namespace caisson::cli
