// Tensor cores, as the threads of a warp use them together; included by cuda_shim.h.
//
// mma and ldmatrix hold elements where the tables of the PTX ISA say. Where wmma leaves that open, thread l holds the
// elements l, l + 32, l + 64 and so on of a tile, and begins again behind the last one.
#pragma once

static float shim_f16_to_float(unsigned short x) {
  const int exponent = x >> 10 & 31, mantissa = x & 1023;
  const float size = exponent == 0    ? ldexpf((float)mantissa, -24)
                     : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                      : ldexpf((float)(mantissa + 1024), exponent - 25);
  return x & 0x8000 ? -size : size;
}
static float shim_bf16_to_float(unsigned short x) {
  const uint32_t bits = (uint32_t)x << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

// All threads of a warp come here with their operands; then `together` runs once on those of all of them.
static void shim_meet(shim_together together, void *x, const void *y, const void *z, int number) {
  shim_thread &self = shim_threads[shim_current];
  self.together = together;
  self.operands[0] = x;
  self.operands[1] = (void *)y;
  self.operands[2] = (void *)z;
  self.number = number;
  shim_pause(SHIM_WARP, 0);
}

static void shim_refuse(const char *what) { snprintf(shim_error, sizeof shim_error, "tensor cores: %s", what); }

// The tile that all threads name, whose rows start at multiples of so many bytes.
template <typename T, int rows, int bytes>
static T *shim_tile(const shim_thread *lanes, int operand) {
  T *tile = (T *)lanes[0].operands[operand];
  for (int l = 0; l < 32; ++l)
    if (lanes[l].operands[operand] != tile || lanes[l].number != lanes[0].number)
      shim_refuse("the threads of a warp name different tiles");
  for (int row = 0; row < rows; ++row)
    if ((uintptr_t)(tile + row * lanes[0].number) % bytes != 0) shim_refuse("a row is not aligned");
  return tile;
}

template <int rows, int columns, int count>
static void shim_wmma_load_all(const shim_thread *lanes) {
  const unsigned short *tile = shim_tile<const unsigned short, rows, 2 * count>(lanes, 1);
  for (int l = 0; l < 32; ++l)
    for (int r = 0; r < count; ++r) {
      const int at = (r * 32 + l) % (rows * columns);
      ((unsigned short *)lanes[l].operands[0])[r] = tile[at / columns * lanes[0].number + at % columns];
    }
}
template <int rows, int columns, int count>
static void shim_wmma_load(void *fragment, const void *tile, int distance) {
  shim_meet(shim_wmma_load_all<rows, columns, count>, fragment, tile, nullptr, distance);
}

template <int rows, int columns>
static void shim_wmma_store_all(const shim_thread *lanes) {
  constexpr int count = rows * columns / 32;
  float *tile = shim_tile<float, rows, 4 * count>(lanes, 1);
  for (int l = 0; l < 32; ++l)
    for (int r = 0; r < count; ++r) {
      const int at = r * 32 + l;
      tile[at / columns * lanes[0].number + at % columns] = ((const float *)lanes[l].operands[0])[r];
    }
}
template <int rows, int columns>
static void shim_wmma_store(const void *fragment, void *tile, int distance) {
  shim_meet(shim_wmma_store_all<rows, columns>, (void *)fragment, tile, nullptr, distance);
}

template <bool is_bf16>
static float shim_element(const void *fragment, int number) {
  const unsigned short bits = ((const unsigned short *)fragment)[number];
  return is_bf16 ? shim_bf16_to_float(bits) : shim_f16_to_float(bits);
}

template <int m, int n, int k, bool a_col, bool b_col, bool is_bf16>
static void shim_wmma_mma_all(const shim_thread *lanes) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      const int place = i * n + j;
      float *sum = (float *)lanes[place % 32].operands[0] + place / 32;
      for (int s = 0; s < k; ++s) {
        const int p = a_col ? s * m + i : i * k + s, q = b_col ? j * k + s : s * n + j;
        *sum += shim_element<is_bf16>(lanes[p % 32].operands[1], p / 32) *
                shim_element<is_bf16>(lanes[q % 32].operands[2], q / 32);
      }
    }
}
template <int m, int n, int k, bool a_col, bool b_col, bool is_bf16>
static void shim_wmma_mma(float *c, const void *a, const void *b) {
  shim_meet(shim_wmma_mma_all<m, n, k, a_col, b_col, is_bf16>, c, a, b, 0);
}

template <int count, bool transposed>
static void shim_ldmatrix_all(const shim_thread *lanes) {
  for (int matrix = 0; matrix < count; ++matrix)
    for (int l = 0; l < 32; ++l)
      for (int e = 0; e < 2; ++e) {
        const int row = transposed ? 2 * (l % 4) + e : l / 4, column = transposed ? l / 4 : 2 * (l % 4) + e;
        const unsigned char *place = (const unsigned char *)lanes[8 * matrix + row].operands[1];
        if ((uintptr_t)place % 16 != 0) shim_refuse("a row is not aligned");
        if (place < __start_shim_shared || place >= __stop_shim_shared) shim_refuse("a row is not in shared memory");
        ((unsigned short *)lanes[l].operands[0])[2 * matrix + e] = ((const unsigned short *)place)[column];
      }
}
template <int count, bool transposed>
static void shim_ldmatrix(void *fragment, const void *row) {
  shim_meet(shim_ldmatrix_all<count, transposed>, fragment, row, nullptr, 0);
}

// Row and column that a thread holds as its element number r, in parts of 8 x 8 that follow each other down.
static void shim_place(int l, int r, bool is_b, int *row, int *column) {
  const int part = r / 2, along = 2 * (l % 4) + r % 2, across = l / 4;
  *row = part % 2 * 8 + (is_b ? along : across);
  *column = part / 2 * 8 + (is_b ? across : along);
}

template <bool is_bf16>
static void shim_mma_all(const shim_thread *lanes) {
  float a[16][16], b[16][8];
  int row, column;
  for (int l = 0; l < 32; ++l) {
    for (int r = 0; r < 8; ++r) {
      shim_place(l, r, false, &row, &column);
      a[row][column] = shim_element<is_bf16>(lanes[l].operands[1], r);
    }
    for (int r = 0; r < 4; ++r) {
      shim_place(l, r, true, &row, &column);
      b[row][column] = shim_element<is_bf16>(lanes[l].operands[2], r);
    }
  }
  for (int l = 0; l < 32; ++l)
    for (int r = 0; r < 4; ++r) {
      shim_place(l, r, false, &row, &column);
      for (int s = 0; s < 16; ++s) ((float *)lanes[l].operands[0])[r] += a[row][s] * b[s][column];
    }
}
template <bool is_bf16>
static void shim_mma(float *c, const void *a, const void *b) {
  shim_meet(shim_mma_all<is_bf16>, c, a, b, 0);
}
