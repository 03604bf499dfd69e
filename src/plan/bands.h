// Bands: arrays that are computed for some neighbouring rows at a time.
//
// The scores of attention have a number for every query and every key. Stored whole, they are by
// far the largest array of the program, and every pass over them goes through memory. But what is
// computed from a row of scores (the maximum, the exponentials, the weighted sum of the values)
// needs that row alone. So the products that make the scores, the loops over them and the products
// that use them up run for a band of rows, then for the next one, and only one band of scores is in
// memory.
//
// A band has coordinates in front (batch, head) that all its members share, and the row after
// them. There are three kinds of members:
// - rows: arrays with the same coordinates in front and the same row, which read other members only
//   there;
// - parts: sums of products over the rows, such as the gradients of keys and values. Each band gives
//   the sum over its own rows, and
// - totals add these up. Where the result of a product has to be checked, because zeros stand for
//   conditions (optimise/contractions.h), the total checks every part and, if it must, computes it
//   again as it is written.
//
// A band ends at its last row. Where a condition says that a column is at most the row (`key <=
// query`), the columns behind the end are not computed at all: nothing reads them, or they would
// only add zeros. Where zeros would be multiplied by numbers that are not finite, as in the sum of
// `p[q, k] * v[k]` without a condition, the program looks at those numbers first.
#pragma once

#include "plan/plan.h"

namespace ein::plan {

// Finds bands among the steps outside of recurrences and moves the members of each next to each
// other.
void form_bands(Plan& plan);

// Notes which members nothing outside of their band reads: they are stored for one band at a time.
// Also puts the members into the order of the schedule, which groups have changed.
void finish_bands(Plan& plan);

}  // namespace ein::plan
