#include "api/file_pump.h"

#include <algorithm>

namespace caisson::api {

FileSource::FileSource(async::Loop& loop, sandbox::File& file, uint64_t begin, uint64_t end)
    : loop_(loop), file_(file), next_(begin), end_(end), tasks_(loop) {}

Task<Result<std::string>> FileSource::Next() {
  while (next_ < end_ && pieces_.size() < kFilesAhead) {
    auto piece = std::make_shared<Piece>(loop_);
    piece->size = static_cast<uint32_t>(std::min<uint64_t>(end_ - next_, kFilePiece));
    pieces_.push_back(piece);
    tasks_.Spawn(Fetch(&file_, next_, piece));
    next_ += piece->size;
  }
  if (pieces_.empty()) co_return std::string();
  const auto piece = pieces_.front();
  co_await piece->come.Wait();
  pieces_.pop_front();
  auto data = *std::move(piece->data);
  if (data && data->size() != piece->size)
    co_return Error(ErrorCode::kConflict,
                    file_.info().name + " became shorter while it was being read")
        .WithRemedy("read it again");
  co_return data;
}

Task<void> FileSource::Fetch(sandbox::File* file, uint64_t offset, std::shared_ptr<Piece> piece) {
  piece->data.emplace(co_await file->Read(offset, piece->size));
  piece->come.Set();
}

FileSink::FileSink(async::Loop& loop, sandbox::File& file, uint64_t offset)
    : file_(file), next_(offset), changed_(loop), tasks_(loop) {}

Task<Status> FileSink::Put(std::string piece) {
  while (under_way_ >= kFilesAhead && !error_) co_await changed_.Wait();
  if (error_) co_return *error_;
  const uint64_t offset = next_;
  next_ += piece.size();
  ++under_way_;
  tasks_.Spawn(Send(this, offset, std::move(piece)));
  co_return Status();
}

Task<Status> FileSink::Drain() {
  while (under_way_ > 0) co_await changed_.Wait();
  if (error_) co_return *error_;
  co_return Status();
}

Task<void> FileSink::Send(FileSink* sink, uint64_t offset, std::string piece) {
  auto written = co_await sink->file_.Write(offset, std::move(piece));
  --sink->under_way_;
  if (!written && !sink->error_) sink->error_ = std::move(written).error();
  sink->changed_.Wake();
}

}  // namespace caisson::api
