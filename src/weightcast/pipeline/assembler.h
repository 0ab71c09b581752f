// Whole tensors out of pieces: in place where a tensor lies in one bucket, joined where it does
// not. One thread, the reader's.
#pragma once

#include <cstdint>
#include <optional>

#include "weightcast/base/mapping.h"
#include "weightcast/base/result.h"
#include "weightcast/device/memory.h"
#include "weightcast/pipeline/lease.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

struct AssembledTensor {
  uint64_t index = 0;  ///< in the order sent
  const TensorMeta* meta = nullptr;
  ConstMemoryView bytes;  ///< valid until the next call of `Assembler::next`
};

class Assembler {
 public:
  /// `reader` outlives the assembler, and nobody else takes pieces from it.
  explicit Assembler(PieceReader& reader) : reader_(reader) {}

  /// The next tensor, verified, or nothing after the last. Holds one bucket between calls. Tensors
  /// that span buckets cost memory of their size, which is kept for the next one. Errors: the
  /// reader's; `kNoResource`.
  Result<std::optional<AssembledTensor>> next();

 private:
  Result<const Piece*> next_piece();

  PieceReader& reader_;
  std::optional<BucketLease> lease_;
  size_t next_in_lease_ = 0;
  Mapping joined_;
};

}  // namespace weightcast
