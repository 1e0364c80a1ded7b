/* Calls a compiled product whose programs share their reduction, in two calls
 * and twice, with the header that came with it alone. */
#include "gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { m = 8, n = 40, k = 4000 };
static float a[m * k], b[k * n], c[m * n];

int main(void) {
  for (int i = 0; i < m * k; ++i)
    a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < k * n; ++i)
    b[i] = (float)(i % 5 - 2);
  void *scratch = NULL, *workspace = NULL;
  if (posix_memalign(&scratch, 64, GEMM_STAGE0_SCRATCH_BYTES + 64) != 0 ||
      posix_memalign(&workspace, 64, 1 << 20) != 0)
    return 1;
  memset(workspace, 0xff, 1 << 20);
  memset(workspace, 0, GEMM_STAGE0_WORKSPACE_ZERO_BYTES);
  void *data[] = {a, b, c, workspace};
  const int64_t strides[] = {k, 1, n, 1, n, 1};
  uint64_t scalars[1] = {0};
  int wrong = 0;
  for (int time = 0; time < 2; ++time) {
    memset(c, 0, sizeof c);
    gemm_stage0(data, strides, scalars, 1, GEMM_STAGE0_PROGRAMS, scratch);
    gemm_stage0(data, strides, scalars, 0, 1, scratch);
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int at = 0; at < k; ++at)
          sum += a[i * k + at] * b[at * n + j];
        wrong += sum != c[i * n + j];
      }
  }
  printf("wrong elements: %d\n", wrong);
  return wrong;
}
