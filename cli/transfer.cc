#include "transfer.h"

#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "out_of_memory.h"
#include "progress.h"

namespace weightcast {
namespace {

class ModelReader final : public TensorReader {
 public:
  ModelReader(const SafetensorsModel& model, ProgressBar& progress)
      : model_(model), progress_(progress) {}

  void open(const SafetensorsModel::Tensor& tensor) { tensor_ = &tensor; }
  Status read(uint64_t offset, MemoryView destination) override {
    WEIGHTCAST_TRY(model_.read(*tensor_, offset, destination));
    progress_.add(destination.size());
    return {};
  }

 private:
  const SafetensorsModel& model_;
  ProgressBar& progress_;
  const SafetensorsModel::Tensor* tensor_ = nullptr;
};

Result<TransferStats> push_all(Sender& sender, uint64_t version, const SafetensorsModel& model) {
  ProgressBar progress(fmt::format("version {}", version), model.payload_size());
  ModelReader reader(model, progress);
  for (const SafetensorsModel::Tensor& tensor : model.tensors()) {
    reader.open(tensor);
    WEIGHTCAST_TRY(sender.push(tensor.meta, reader));
  }
  return sender.finish();
}

uint64_t total_size(const std::vector<TensorMeta>& metas) {
  uint64_t size = 0;
  for (const TensorMeta& meta : metas) size += byte_size(meta);
  return size;
}

Status take_all(Receiver& receiver, SafetensorsWriter* writer, ProgressBar& progress) {
  while (true) {
    WEIGHTCAST_ASSIGN(const std::optional<BucketLease> lease, receiver.next());
    if (!lease) return {};
    for (const Piece& piece : lease->pieces()) {
      WEIGHTCAST_TRY(receiver.verify(piece));
      if (writer != nullptr) WEIGHTCAST_TRY(writer->write(piece.tensor, piece.offset, piece.bytes));
      progress.add(piece.bytes.size());
    }
  }
}

Result<TransferStats> take_version(Receiver& receiver, const std::filesystem::path& path) {
  std::unique_ptr<SafetensorsWriter> writer;
  if (!path.empty()) {
    if (!receiver.metas_announced()) {
      return Error(Code::kUnsupported,
                   "this sender does not announce its tensors, and a safetensors file names all of "
                   "them before the first byte; receive with --verify-only");
    }
    // Before the first `next`, so that a disk that is too small is known before any byte moves.
    WEIGHTCAST_ASSIGN(writer, SafetensorsWriter::create(path, receiver.metas()));
  }
  {
    ProgressBar progress(fmt::format("version {}", receiver.version()),
                         total_size(receiver.metas()));
    WEIGHTCAST_TRY(take_all(receiver, writer.get(), progress));
  }
  return receiver.finish([&]() -> Status { return writer ? writer->commit() : Status(); });
}

}  // namespace

Result<TransferStats> send_version(Session& session, uint64_t version,
                                   const SafetensorsModel& model) {
  auto sender = session.begin_send(version, model.metas());
  if (!sender) return sender.error();
  auto stats = catch_out_of_memory([&] { return push_all(**sender, version, model); });
  // While the sender lives: without it the version would end with a vaguer cause.
  if (!stats) session.abort(stats.error());
  return stats;
}

std::filesystem::path version_path(const std::filesystem::path& out, uint64_t version,
                                   bool several) {
  const std::filesystem::path folder = several ? out / fmt::format("v{}", version) : out;
  return folder / "model.safetensors";
}

Result<TransferStats> receive_version(Session& session, const std::filesystem::path& out,
                                      bool several, std::string& file) {
  WEIGHTCAST_ASSIGN(const std::unique_ptr<Receiver> receiver, session.begin_receive());
  const std::filesystem::path path =
      out.empty() ? out : version_path(out, receiver->version(), several);
  auto stats = catch_out_of_memory([&] { return take_version(*receiver, path); });
  if (!stats) {
    // While the receiver lives: without it the version would end with a vaguer cause.
    session.abort(stats.error());
    return stats;
  }
  file = path.string();
  return stats;
}

}  // namespace weightcast
