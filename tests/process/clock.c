/* Gives the process that preloads it a wall clock of its own: the real one and an offset in microseconds, which stands
 * as 8 bytes in the file that TENURE_TEST_CLOCK names and is read at every look. Monotonic time stays as it is.
 * It takes no memory from the heap: allocators look at the clock. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void map_the_offset(void) {
    const char *path = getenv("TENURE_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) abort();
    void *map = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) abort();
    close(file);
    offset = map;
}

static int64_t now_in_micros(void) {
    struct timespec real;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
    return (int64_t)real.tv_sec * 1000000 + real.tv_nsec / 1000 + (offset ? *offset : 0);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    int64_t now = now_in_micros();
    time->tv_sec = now / 1000000;
    time->tv_usec = now % 1000000;
    return 0;
}

time_t time(time_t *result) {
    time_t now = now_in_micros() / 1000000;
    if (result) *result = now;
    return now;
}

int clock_gettime(clockid_t clock, struct timespec *result) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, result);
    int64_t now = now_in_micros();
    result->tv_sec = now / 1000000;
    result->tv_nsec = now % 1000000 * 1000;
    return 0;
}
