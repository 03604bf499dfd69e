// The source frame of a diagnostic: the lines that its labels touch, underlined, with the labels'
// texts. Labels may share a line, overlap, or span several lines.
#pragma once

#include <string>
#include <vector>

#include "base/canvas.h"
#include "base/diag.h"

namespace ein {

// The lines of one file that `labels` (all in that file) touch. `gutter` is the width of the
// line-number column, `mark` the style of the primary label. Rows start with the gutter.
void draw_frame(Canvas& canvas, const SourceMap& sources, const std::vector<Label>& labels,
                size_t gutter, Style mark);

// The lines that a fix changes, as they read after it, with the new text marked.
void draw_fix(Canvas& canvas, const SourceMap& sources, const Fix& fix, size_t gutter);

}  // namespace ein
