/*
 * Preloaded into Debian's user-mode Linux 6.1 so that it boots on processors with large vector state.
 *
 * The kernel restores a process's vector registers with PTRACE_SETREGSET from a buffer of 2696 bytes (AVX-512);
 * the host demands exactly its own size, which is larger with AMX, and refuses with EFAULT: a panic at the first
 * process. Here the buffer is padded with zeros, the initial state of what the guest does not know. Elsewhere
 * nothing changes.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* <linux/ptrace.h>, <linux/elf.h>; not included: they clash with the prototype below. */
enum { PEEK_FIRST = 1, PEEK_LAST = 3, SETREGSET = 0x4205, X86_XSTATE = 0x202 };

/* Largest vector state a processor has today is 11008 bytes. */
static __thread char padded[32768] __attribute__((aligned(64)));

/* Size of the vector state as enabled by the host: CPUID leaf 0xD, subleaf 0, EBX. */
static size_t host_size(void)
{
	static size_t known;
	unsigned a, b, c, d;

	if (!known) {
		__cpuid_count(0xd, 0, a, b, c, d);
		known = b;
	}
	return known;
}

long ptrace(int request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	pid_t pid = va_arg(arguments, pid_t);
	void *address = va_arg(arguments, void *);
	void *data = va_arg(arguments, void *);
	va_end(arguments);

	/* The system call stores a peeked word through its data argument; the library call returns it. */
	if (request >= PEEK_FIRST && request <= PEEK_LAST) {
		long word;
		if (syscall(SYS_ptrace, request, pid, address, &word) < 0)
			return -1;
		errno = 0;
		return word;
	}

	struct iovec whole;
	if (request == SETREGSET && address == (void *)X86_XSTATE) {
		const struct iovec *given = data;
		size_t size = host_size();
		if (given->iov_len < size && size <= sizeof padded) {
			memcpy(padded, given->iov_base, given->iov_len);
			memset(padded + given->iov_len, 0, size - given->iov_len);
			whole.iov_base = padded;
			whole.iov_len = size;
			data = &whole;
		}
	}
	return syscall(SYS_ptrace, request, pid, address, data);
}
