/* Calls the exported rms_norm on 3 rows of 37 with a row stride of 40. */
#include "rms_norm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS RMS_NORM_X_EXTENT0
#define COLS RMS_NORM_X_EXTENT1
#define STRIDE 40

int main(void) {
  static float x[3 * STRIDE], w[STRIDE], y[3 * STRIDE];
  for (int i = 0; i < 3 * STRIDE; ++i) {
    x[i] = (float)((i * 7919) % 101) / 50 - 1;
    y[i] = -5;
  }
  for (int i = 0; i < STRIDE; ++i)
    w[i] = 1 + (float)i / 64;

  void *data[] = {x, w, y};
  const int64_t strides[] = {STRIDE, 1, 1, STRIDE, 1};
  uint64_t scalars[1] = {0};
  float eps = 1e-6F;
  memcpy(&scalars[0], &eps, sizeof eps);
  void *scratch = 0;
  if (posix_memalign(&scratch, 64, RMS_NORM_STAGE0_SCRATCH_BYTES + 64) != 0)
    return 1;
  /* In two parts, as two threads would. */
  for (int64_t begin = 0; begin < RMS_NORM_STAGE0_PROGRAMS; begin += 2) {
    int64_t end = begin + 2;
    if (end > RMS_NORM_STAGE0_PROGRAMS)
      end = RMS_NORM_STAGE0_PROGRAMS;
    if (rms_norm_stage0(data, strides, scalars, begin, end, scratch) != 0)
      return 1;
  }
  free(scratch);

  double largest = 0;
  for (int64_t row = 0; row < ROWS; ++row) {
    double sum = 0;
    for (int64_t col = 0; col < COLS; ++col)
      sum += (double)x[row * STRIDE + col] * x[row * STRIDE + col];
    for (int64_t col = 0; col < STRIDE; ++col) {
      double expected =
          col < COLS ? x[row * STRIDE + col] / sqrt(sum / COLS + 1e-6) * w[col]
                     : -5;
      double error = fabs(y[row * STRIDE + col] - expected);
      if (!(error <= largest))
        largest = error;
    }
  }
  printf("largest error %g: %s\n", largest, largest < 1e-5 ? "right" : "WRONG");
  return largest < 1e-5 ? 0 : 1;
}
