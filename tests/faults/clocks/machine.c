/* Moves the machine's clock of one process, for tests of clocks that jump.
 *
 * Load it with LD_PRELOAD. CLOCK_FILE names a file of two 64-bit integers, in nanoseconds: the first is added to the
 * Unix time at every reading, the second at every second reading too. Clocks that measure durations stay as they are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile int64_t *moved;
static unsigned readings;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, 2 * sizeof *moved, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) moved = found;
    close(file);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, which, now);
    if (result || !moved || (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)) return result;
    int64_t by = moved[0] + (__atomic_fetch_add(&readings, 1, __ATOMIC_RELAXED) & 1 ? moved[1] : 0);
    int64_t at = now->tv_sec * SECOND + now->tv_nsec + by;
    now->tv_sec = at / SECOND;
    now->tv_nsec = at % SECOND;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}
