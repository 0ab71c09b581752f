// A bucket as its consumer sees it: pieces of tensors, readable until the lease is given back.
// One thread, the receiver's.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "weightcast/base/result.h"
#include "weightcast/device/memory.h"
#include "weightcast/plan/tensor_meta.h"

namespace weightcast {

/// A tensor's part in a bucket that arrived.
struct Piece {
  uint64_t tensor = 0;    ///< index in the order sent
  uint64_t offset = 0;    ///< bytes into the tensor
  ConstMemoryView bytes;  ///< valid as long as the lease
  bool completes_tensor = false;
};

/// A bucket that this rank may read until it lets it go. Move-only; its owner outlives it.
class BucketLease {
 public:
  /// Takes leases back.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void release(uint64_t number) = 0;
  };

  BucketLease(Owner& owner, uint64_t number, std::vector<Piece> pieces)
      : owner_(&owner), number_(number), pieces_(std::move(pieces)) {}
  ~BucketLease() { release(); }
  BucketLease(BucketLease&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)),
        number_(other.number_),
        pieces_(std::move(other.pieces_)) {}
  BucketLease& operator=(BucketLease&& other) noexcept {
    if (this != &other) {
      release();
      owner_ = std::exchange(other.owner_, nullptr);
      number_ = other.number_;
      pieces_ = std::move(other.pieces_);
    }
    return *this;
  }
  BucketLease(const BucketLease&) = delete;
  BucketLease& operator=(const BucketLease&) = delete;

  /// In the order sent.
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }

  /// Gives the slot back; the pieces' bytes are invalid from now on. Idempotent, does not block.
  void release() {
    if (owner_ != nullptr) std::exchange(owner_, nullptr)->release(number_);
  }

 private:
  Owner* owner_;
  uint64_t number_;
  std::vector<Piece> pieces_;
};

/// The tensors of one version, piece by piece.
class PieceReader {
 public:
  virtual ~PieceReader() = default;
  /// The tensors known so far, in the order sent.
  [[nodiscard]] virtual const std::vector<TensorMeta>& metas() const = 0;
  /// The next bucket, or nothing after the last. Blocks; see the implementation for how long.
  /// Errors: `kCorruption`; `kInvalidArgument` when the caller holds every slot itself.
  virtual Result<std::optional<BucketLease>> next() = 0;

  /// Every piece must be taken exactly once, in order, by one of these two. Errors of both:
  /// `kCorruption` when the piece completes a tensor whose digest is not the sender's;
  /// `kInvalidArgument` out of order.
  /// Copies a piece to `destination` of the same size, and digests it on the way.
  virtual Status copy_out(const Piece& piece, MemoryView destination) = 0;
  /// Digests a piece in place, for consumers that use it where it is.
  virtual Status verify(const Piece& piece) = 0;
};

}  // namespace weightcast
