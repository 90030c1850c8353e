// ConfiguredGate: the gate of a server as it was started.
//
// A request is identified by the credential it shows (api/credential.h, api/authenticator.h). On a
// unix socket the kernel says who is there: the server's own user and root need show nothing. With
// Mode::kNone everybody on this machine is the admin, and nobody from elsewhere is anybody.
// Belongs to one Loop's thread; what it is given outlives it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "api/allowances.h"
#include "api/authenticator.h"
#include "api/gate.h"
#include "auth/browser_guard.h"

namespace caisson::api {

inline constexpr const char* kDefaultTenant = "default";

class ConfiguredGate final : public Gate {
 public:
  enum class Mode { kCredentials, kNone };
  struct Options {
    Mode mode = Mode::kCredentials;
    uid_t own_uid = 0;  // who may use a unix socket without a credential, besides root
    // Told of every call that is let in: for the usage records.
    std::function<void(const auth::Principal&)> on_call;
  };

  ConfiguredGate(Options options, auth::BrowserGuard guard,
                 std::vector<Authenticator*> authenticators, Allowances& allowances)
      : options_(std::move(options)),
        guard_(std::move(guard)),
        authenticators_(std::move(authenticators)),
        allowances_(allowances) {}

  Look LookAt(const net::Request& request) const override;
  Task<Result<auth::Principal>> Identify(const net::Request* request) override;
  Share Take(const auth::Principal& principal, Cost cost) override;

 private:
  Result<auth::Principal> WhoIs(const net::Request& request);
  Result<auth::Principal> Check(const std::string& credential);

  const Options options_;
  const auth::BrowserGuard guard_;
  const std::vector<Authenticator*> authenticators_;
  Allowances& allowances_;
};

}  // namespace caisson::api
