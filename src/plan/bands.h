// Bands: arrays that are computed for some neighbouring rows at a time.
//
// The scores of attention have a number for every query and every key. Stored whole, they are by
// far the largest array of the program, and every pass over them goes through memory. But what is
// computed from a row of scores (the maximum, the exponentials, the weighted sum of the values)
// needs only that row. So the products that make the scores, the loops over them and the products
// that consume them run for a band of rows, then for the next band, and only one band of scores is
// in memory.
//
// All members of a band share some front coordinates (batch, head), followed by the row. There are
// three kinds of members:
// - rows: arrays with the same front coordinates and the same row, which read other members only at
//   their own row;
// - parts: sums of products over the rows, such as the gradients of keys and values. Each band
//   computes the sum over its own rows;
// - totals: they add up the parts. If the result of a product has to be checked, because zeros stand
//   for conditions (optimise/contractions.h), the total checks every part, and computes it as written
//   if it is not finite.
//
// A band ends at its last row. If a condition says that a column is at most the row (`key <= query`),
// the columns beyond that row are not computed at all, because nothing reads them or they would only
// add zeros. If those zeros would be multiplied by numbers that may not be finite, as in the sum of
// `p[q, k] * v[k]` without a condition, the program first checks that the numbers are finite.
#pragma once

#include "plan/plan.h"

namespace ein::plan {

// Finds bands among the steps outside of recurrences and makes the members of each adjacent.
void form_bands(Plan& plan);

// Called after groups are formed. Puts the members in the order of the schedule, which groups have
// changed, and marks members that only their band reads: they are stored for one band at a time.
void finish_bands(Plan& plan);

}  // namespace ein::plan
