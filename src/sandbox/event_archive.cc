#include "sandbox/event_archive.h"

#include <algorithm>
#include <utility>

#include "json/json.h"
#include "store/event_records.h"

namespace caisson::sandbox {
namespace {

constexpr size_t kBatch = 256;        // events written at a time
constexpr int kPage = 256;            // events read at a time
constexpr uint64_t kScanned = 20000;  // numbers looked at at a time, so that others get their turn

std::string DetailsToJson(const SessionEvent& event) {
  json::Object details;
  for (const auto& [name, value] : event.details) details[name] = value;
  return json::Write(details);
}

store::EventRecord ToStore(const EventItem& item) {
  store::EventRecord row;
  if (const auto* missed = std::get_if<EventsMissed>(&item)) {
    row.seq = static_cast<int64_t>(missed->to);
    row.time_ms = SystemTime().time_since_epoch().count();
    row.type = store::kEventsMissed;
    row.body = json::Write(json::Object{{"from", missed->from}});
    return row;
  }
  const auto& event = std::get<SessionEvent>(item);
  row.seq = static_cast<int64_t>(event.sequence);
  row.time_ms = event.time.time_since_epoch().count();
  row.tenant = event.tenant;
  row.session_id = event.session_id;
  row.type = NameOf(event.kind);
  row.body = DetailsToJson(event);
  row.key_id = event.key_id;
  return row;
}

// A row that says nothing that is understood stands for itself, missing.
EventItem FromStore(const store::EventRecord& row) {
  const auto number = static_cast<uint64_t>(row.seq);
  const auto body = json::Parse(row.body);
  const bool sound = body && body->is_object();
  const auto kind = EventKindFrom(row.type);
  if (!sound || !kind) {
    const json::Value* from = sound ? body->as_object().if_contains("from") : nullptr;
    const int64_t* first = from == nullptr ? nullptr : from->if_int64();
    return EventsMissed{
        first == nullptr || *first < 1 ? number : std::min(static_cast<uint64_t>(*first), number),
        number};
  }
  SessionEvent event{.sequence = number,
                     .time = WallTime(std::chrono::milliseconds(row.time_ms)),
                     .kind = *kind,
                     .session_id = row.session_id,
                     .tenant = row.tenant,
                     .key_id = row.key_id,
                     .details = {}};
  for (const auto& [name, value] : body->as_object())
    if (value.is_string()) event.details.emplace_back(name, value.as_string());
  return event;
}

store::EventRange ToStore(const EventFilter& filter, EventsMissed range) {
  store::EventRange rows;
  rows.from = static_cast<int64_t>(range.from);
  rows.to = static_cast<int64_t>(range.to);
  rows.tenant = filter.tenant;
  rows.key_id = filter.key_id;
  if (!filter.session_id.empty()) rows.session_id = filter.session_id;
  for (const EventKind kind : filter.kinds) rows.types.emplace_back(NameOf(kind));
  rows.limit = kPage;
  return rows;
}

// Two ranges with nothing between them are told as one.
void Add(std::vector<EventItem>& items, EventItem item) {
  const auto* missed = std::get_if<EventsMissed>(&item);
  auto* before = items.empty() ? nullptr : std::get_if<EventsMissed>(&items.back());
  if (missed == nullptr || before == nullptr || missed->from > before->to + 1)
    return items.push_back(std::move(item));
  before->to = missed->to;
}

Result<EventArchive::Page> ReadPage(store::Database& database, const EventFilter& filter,
                                    EventsMissed range) {
  EventArchive::Page page;
  page.next = range.to + 1;
  CAISSON_ASSIGN(const auto kept, store::OldestEvent(database));
  const uint64_t oldest = kept ? static_cast<uint64_t>(*kept) : range.to + 1;
  if (range.from < oldest) {
    const EventsMissed purged{range.from, std::min(oldest - 1, range.to)};
    page.items.emplace_back(purged);
    range.from = purged.to + 1;
    if (range.from > range.to) return page;
  }
  range.to = std::min(range.to, range.from + kScanned - 1);
  CAISSON_ASSIGN(const auto rows, store::ListEvents(database, ToStore(filter, range)));
  for (const auto& row : rows) {
    EventItem item = FromStore(row);
    if (auto* missed = std::get_if<EventsMissed>(&item))
      missed->from = std::max(missed->from, range.from);
    Add(page.items, std::move(item));
  }
  page.next = rows.size() < kPage ? range.to + 1 : static_cast<uint64_t>(rows.back().seq) + 1;
  return page;
}

uint64_t NumberOf(const EventItem& item) {
  const auto* missed = std::get_if<EventsMissed>(&item);
  return missed != nullptr ? missed->to : std::get<SessionEvent>(item).sequence;
}

uint64_t FirstOf(const EventItem& item) {
  const auto* missed = std::get_if<EventsMissed>(&item);
  return missed != nullptr ? missed->from : std::get<SessionEvent>(item).sequence;
}

}  // namespace

Task<Result<uint64_t>> EventArchive::NextNumber(store::Store* store) {
  CAISSON_CO_ASSIGN(const int64_t newest, co_await store->Read<int64_t>([](store::Database& db) {
    return store::NewestEvent(db);
  }));
  co_return static_cast<uint64_t>(newest) + 1;
}

EventArchive::EventArchive(async::Loop& loop, EventBus& bus, store::Store& store, log::Logger log)
    : bus_(bus),
      store_(store),
      log_(log),
      published_(bus.Subscribe({}, std::nullopt, Sight::kPublished)),
      tasks_(loop) {
  bus_.TellWhenKept();
  tasks_.Spawn(KeepTask());
}

Task<void> EventArchive::KeepTask() {
  for (;;) {
    std::optional<EventItem> item = co_await published_->Next();
    std::vector<EventItem> items;
    uint64_t last = 0;
    for (; item; item = published_->Poll()) {
      last = NumberOf(*item);
      items.push_back(*std::move(item));
      if (items.size() == kBatch) break;
    }
    co_await Keep(std::move(items));
    bus_.KeptThrough(last);
  }
}

Task<void> EventArchive::Keep(std::vector<EventItem> items) {
  const EventsMissed range{FirstOf(items.front()), NumberOf(items.back())};
  std::vector<store::EventRecord> rows;
  for (const EventItem& item : items) rows.push_back(ToStore(item));
  const auto kept = co_await store_.Write(store::Durability::kSoon,
                                          [rows = std::move(rows)](store::Database& db) -> Status {
                                            for (const auto& row : rows)
                                              CAISSON_TRY(store::InsertEvent(db, row));
                                            return {};
                                          });
  if (kept) co_return;
  log_.Error("events were not kept", kept.error(), {{"from", range.from}, {"to", range.to}});
  // Their numbers are used all the same; one row remembers that, also on a full disk.
  const auto noted = co_await store_.Write(
      store::Durability::kSoon,
      [row = ToStore(EventItem(range))](store::Database& db) {
        return store::InsertEvent(db, row);
      },
      store::Purpose::kShrink);
  if (!noted) log_.Error("that events were not kept was not noted", noted.error());
}

Task<Result<EventArchive::Page>> EventArchive::Read(EventFilter filter, EventsMissed range) {
  return store_.Read<Page>([filter = std::move(filter), range](store::Database& db) {
    return ReadPage(db, filter, range);
  });
}

EventReader::EventReader(EventBus& bus, EventArchive* archive, EventFilter filter,
                         std::optional<uint64_t> after)
    : archive_(archive), filter_(filter), live_(bus.Subscribe(std::move(filter), after)) {}

// What is at hand; notes what has to be recalled first.
std::optional<EventItem> EventReader::Take() {
  if (!recalled_.empty()) {
    EventItem item = std::move(recalled_.front());
    recalled_.pop_front();
    return item;
  }
  if (wanted_) return std::nullopt;
  auto item = live_->Poll();
  if (!item || archive_ == nullptr || std::holds_alternative<SessionEvent>(*item)) return item;
  wanted_ = std::get<EventsMissed>(*item);
  return std::nullopt;
}

Task<Status> EventReader::Recall() {
  CAISSON_CO_ASSIGN(auto page, co_await archive_->Read(filter_, *wanted_));
  recalled_.assign(std::make_move_iterator(page.items.begin()),
                   std::make_move_iterator(page.items.end()));
  if (page.next > wanted_->to)
    wanted_.reset();
  else
    wanted_->from = page.next;
  co_return Status();
}

Task<Result<std::optional<EventItem>>> EventReader::Poll() {
  for (;;) {
    if (auto item = Take()) co_return std::optional(*std::move(item));
    if (!wanted_) co_return std::optional<EventItem>();
    CAISSON_CO_TRY(co_await Recall());
  }
}

Task<Result<EventItem>> EventReader::Next() {
  for (;;) {
    CAISSON_CO_ASSIGN(auto item, co_await Poll());
    if (item) co_return *std::move(item);
    auto live = co_await live_->Next();
    if (archive_ == nullptr || std::holds_alternative<SessionEvent>(live)) co_return live;
    wanted_ = std::get<EventsMissed>(live);
  }
}

}  // namespace caisson::sandbox
