#include "weightcast/pipeline/assembler.h"

#include "weightcast/base/check.h"

namespace weightcast {

Result<std::optional<AssembledTensor>> Assembler::next() {
  WEIGHTCAST_ASSIGN(const Piece* piece, next_piece());
  if (piece == nullptr) return std::optional<AssembledTensor>();
  const uint64_t index = piece->tensor;
  if (piece->offset == 0 && piece->completes_tensor) {
    WEIGHTCAST_TRY(reader_.verify(*piece));
    return std::optional<AssembledTensor>({index, &reader_.metas()[index], piece->bytes});
  }
  const uint64_t size = byte_size(reader_.metas()[index]);
  if (joined_.size() < size) {
    joined_.reset();
    WEIGHTCAST_ASSIGN(joined_, Mapping::anonymous(size));
  }
  bool complete = false;
  while (!complete) {
    WEIGHTCAST_TRY(reader_.copy_out(
        *piece, MemoryView(joined_.data(), size).subspan(piece->offset, piece->bytes.size())));
    complete = piece->completes_tensor;
    if (!complete) {
      WEIGHTCAST_ASSIGN(piece, next_piece());
      WEIGHTCAST_CHECK(piece != nullptr);  // the last bucket never leaves a tensor open
    }
  }
  return std::optional<AssembledTensor>(
      {index, &reader_.metas()[index], ConstMemoryView(joined_.data(), size)});
}

Result<const Piece*> Assembler::next_piece() {
  while (!lease_ || next_in_lease_ == lease_->pieces().size()) {
    lease_.reset();
    next_in_lease_ = 0;
    WEIGHTCAST_ASSIGN(lease_, reader_.next());
    if (!lease_) return nullptr;
  }
  return &lease_->pieces()[next_in_lease_++];
}

}  // namespace weightcast
