// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/segment.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "core/error.h"

namespace annulus {
namespace {

// A stream, not packets: Linux 6.18 sometimes reports the end of a SOCK_SEQPACKET connection whose
// peer has closed before the packet that is still waiting in it.
constexpr int socket_flags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

Descriptor owned(int number, const char* what) {
  require(number >= 0, ErrorKind::resource, "{}", with_errno(what));
  return Descriptor(number);
}

// What the kernel thinks a process could still get without swapping.
std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::size_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes << 10;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::numeric_limits<std::size_t>::max();
}

void require_memory(std::size_t wanted, std::size_t next) {
  const std::size_t available = available_memory();
  if (next <= available) return;
  throw Error(ErrorKind::resource, "no memory for the gradients that ranks share")
      .values(fmt::format("{} bytes", wanted), fmt::format("{} bytes available", available));
}

// Piece by piece: the neighbours reserve theirs at the same time, and asking for more than there
// is would wake the kernel's killer of processes.
void reserve(const Descriptor& file, std::size_t bytes) {
  constexpr std::size_t piece = std::size_t{256} << 20;
  require_memory(bytes, bytes);
  for (std::size_t done = 0; done < bytes; done += piece) {
    const std::size_t next = std::min(piece, bytes - done);
    require_memory(bytes, next);
    const int code =
        posix_fallocate(file.get(), static_cast<off_t>(done), static_cast<off_t>(next));
    if (code == 0) continue;
    errno = code;
    throw Error(ErrorKind::resource, with_errno("no memory for the gradients that ranks share"))
        .values(fmt::format("{} bytes", bytes),
                fmt::format("{} bytes available", available_memory()));
  }
}

Buffer map(const Descriptor& file, std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  require(data != MAP_FAILED, ErrorKind::resource, "{}",
          with_errno(fmt::format("cannot map {} shared bytes", bytes)));
  return {data, bytes, [](void* memory, std::size_t size) { munmap(memory, size); }};
}

// Listens on a name that the kernel chooses, and writes it to `handle`: length, then the name.
Descriptor listen_anywhere(Segment::Handle& handle) {
  Descriptor listener = owned(socket(AF_UNIX, socket_flags, 0), "socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(sa_family_t);
  require(bind(listener.get(), generic, size) == 0, ErrorKind::resource, "{}", with_errno("bind"));
  size = sizeof(address);
  require(getsockname(listener.get(), generic, &size) == 0 && size <= handle.size(),
          ErrorKind::resource, "{}", with_errno("getsockname"));
  require(listen(listener.get(), SOMAXCONN) == 0, ErrorKind::resource, "{}", with_errno("listen"));
  handle[0] = static_cast<std::byte>(size);
  std::memcpy(&handle[1], &address, std::min<std::size_t>(size, handle.size() - 1));
  return listener;
}

// An open connection, or a closed descriptor where the listener has no room yet.
Descriptor connect_to(const Segment::Handle& handle) {
  sockaddr_un address{};
  const auto size = static_cast<socklen_t>(handle[0]);
  std::memcpy(&address, &handle[1], size);
  Descriptor connection = owned(socket(AF_UNIX, socket_flags, 0), "socket");
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) {
    return connection;
  }
  require(errno == EAGAIN, ErrorKind::peer, "{}", with_errno("connect to a rank of this node"));
  return {};
}

bool is_of_same_user(const Descriptor& connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

// A message of one byte that carries one descriptor.
struct Envelope {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};

  Envelope() {
    header.msg_iov = &content;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;
};

void send_descriptor(const Descriptor& connection, const Descriptor& file) {
  Envelope envelope;
  cmsghdr* part = CMSG_FIRSTHDR(&envelope.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = file.get();
  std::memcpy(CMSG_DATA(part), &number, sizeof(number));
  require(sendmsg(connection.get(), &envelope.header, MSG_NOSIGNAL) == 1, ErrorKind::peer, "{}",
          with_errno("hand memory to a rank of this node"));
}

// A closed descriptor where nothing has come yet.
Descriptor receive_descriptor(const Descriptor& connection) {
  Envelope envelope;
  const ssize_t got = recvmsg(connection.get(), &envelope.header, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  const cmsghdr* part = got == 1 ? CMSG_FIRSTHDR(&envelope.header) : nullptr;
  require(part != nullptr && part->cmsg_type == SCM_RIGHTS, ErrorKind::peer,
          "a rank of this node did not hand over its memory");
  int number = -1;
  std::memcpy(&number, CMSG_DATA(part), sizeof(number));
  return Descriptor(number);
}

}  // namespace

SharedSegment::SharedSegment(std::size_t bytes)
    : file_(owned(memfd_create("annulus", MFD_CLOEXEC), "memfd_create")) {
  reserve(file_, bytes);
  mine_ = map(file_, bytes);
  listener_ = listen_anywhere(handle_);
}

std::span<std::byte> SharedSegment::of(int local_rank) const {
  const auto local = static_cast<std::size_t>(local_rank);
  const bool own = others_.empty() || others_[local].data() == nullptr;
  const Buffer& buffer = own ? mine_ : others_[local];
  return {buffer.as<std::byte>(), buffer.bytes()};
}

void SharedSegment::connect(std::span<const Handle> handles, int local_rank,
                            const Deadline& deadline) {
  const auto me = static_cast<std::size_t>(local_rank);
  others_.resize(handles.size());
  connections_.resize(handles.size());
  const auto done = [&] {
    while (hand_over()) continue;
    for (std::size_t local = 0; local < handles.size(); ++local) {
      if (local == me || others_[local].data() != nullptr) continue;
      if (!connections_[local].open()) connections_[local] = connect_to(handles[local]);
      if (connections_[local].open() && take(local)) ++taken_;
    }
    return given_ + 1 == handles.size() && taken_ + 1 == handles.size();
  };
  require(wait_until(deadline, done, doze_in_proportion), ErrorKind::peer,
          "a rank of this node did not exchange memory within {:g} s", deadline.seconds());
  connections_.clear();
  listener_ = Descriptor();
}

// Serves one neighbour that has connected; false where there is none.
bool SharedSegment::hand_over() {
  const Descriptor connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection.open()) return false;
  if (is_of_same_user(connection)) {
    send_descriptor(connection, file_);
    ++given_;
  }
  return true;
}

bool SharedSegment::take(std::size_t local_rank) {
  const Descriptor file = receive_descriptor(connections_[local_rank]);
  if (!file.open()) return false;
  struct stat status {};
  require(fstat(file.get(), &status) == 0, ErrorKind::resource, "{}", with_errno("fstat"));
  require_equal(mine_.bytes(), static_cast<std::size_t>(status.st_size), "bytes of shared memory");
  others_[local_rank] = map(file, mine_.bytes());
  return true;
}

}  // namespace annulus
