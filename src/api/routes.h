// The route table, resource by resource. AllRoutes is what a server serves.
#pragma once

#include <vector>

#include "api/route.h"

namespace caisson::api {

void AddSessionRoutes(std::vector<Route>& routes);
void AddExecRoutes(std::vector<Route>& routes);
void AddProcessRoutes(std::vector<Route>& routes);
void AddFileRoutes(std::vector<Route>& routes);
void AddFileContentRoutes(std::vector<Route>& routes);
void AddFileWatchRoutes(std::vector<Route>& routes);
void AddSignedFileRoutes(std::vector<Route>& routes);
void AddTarRoutes(std::vector<Route>& routes);
void AddArtifactRoutes(std::vector<Route>& routes);
void AddLogRoutes(std::vector<Route>& routes);
void AddClassicRoutes(std::vector<Route>& routes);
void AddServerRoutes(std::vector<Route>& routes);
void AddKeyRoutes(std::vector<Route>& routes);
void AddTokenRoutes(std::vector<Route>& routes);
void AddEventRoutes(std::vector<Route>& routes);
void AddStreamRoutes(std::vector<Route>& routes);
void AddAuditRoutes(std::vector<Route>& routes);
void AddUsageRoutes(std::vector<Route>& routes);
void AddWebhookRoutes(std::vector<Route>& routes);
void AddAlertRoutes(std::vector<Route>& routes);

std::vector<Route> AllRoutes();

}  // namespace caisson::api
