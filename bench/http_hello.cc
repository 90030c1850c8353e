// http_hello: a hello-world server as Boost.Beast's own examples have it, on one thread, with none
// of this project's code. What an answer of Caisson's costs stands beside it.
//
//   http_hello          listens on a loopback port of the kernel's choice; prints it

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <exception>

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

asio::awaitable<void> Talk(tcp::socket socket) {
  boost::beast::flat_buffer buffer;
  try {
    for (bool keep = true; keep;) {
      http::request<http::string_body> request;
      co_await http::async_read(socket, buffer, request, asio::use_awaitable);
      keep = request.keep_alive();
      http::response<http::string_body> response(http::status::ok, request.version());
      response.set(http::field::content_type, "application/json");
      response.keep_alive(keep);
      response.body() = R"({"status":"ok","version":"0.0.0"})";
      response.prepare_payload();
      co_await http::async_write(socket, response, asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {
    // The client has gone.
  }
}

asio::awaitable<void> Listen(tcp::acceptor acceptor) {
  const auto executor = co_await asio::this_coro::executor;
  for (;;) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    socket.set_option(tcp::no_delay(true));
    asio::co_spawn(executor, Talk(std::move(socket)), asio::detached);
  }
}

}  // namespace

int main() {
  try {
    asio::io_context context(1);
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    printf("listening on http://127.0.0.1:%d\n", acceptor.local_endpoint().port());
    fflush(stdout);
    asio::co_spawn(context, Listen(std::move(acceptor)), asio::detached);
    context.run();
  } catch (const std::exception& error) {
    fprintf(stderr, "http_hello: %s\n", error.what());
    return 1;
  }
}
