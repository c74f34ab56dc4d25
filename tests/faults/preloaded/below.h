/* Finds out whether a file lies below one folder, for libraries that are loaded with LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[PATH_MAX];
static size_t root_length;

/* Looks below this folder from now on; without it nothing lies below. */
static int look_below(const char *folder) {
    if (!folder || !realpath(folder, root)) return 0;
    root_length = strlen(root);
    return 1;
}

/* What stands below the root, as a path relative to it; NULL for everything else. */
static const char *below(const char *path) {
    if (!root_length || strncmp(path, root, root_length) || path[root_length] != '/') return NULL;
    return path + root_length + 1;
}

/* The path of an open file relative to the root, empty for the root itself; NULL where it does not lie there. */
static const char *path_of(int file, char *into) {
    char link[64];
    if (!root_length) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, into, PATH_MAX - 1);
    if (length <= 0) return NULL;
    into[length] = 0;
    return strcmp(into, root) ? below(into) : "";
}

/* The absolute path of a name that is relative to a folder, without links in its folders; relative to the root. */
static const char *absolute(int folder, const char *name, char *into) {
    char joined[PATH_MAX * 2], parent[PATH_MAX], base[NAME_MAX + 1];
    if (!root_length || !name) return NULL;
    if (name[0] == '/') {
        snprintf(joined, sizeof joined, "%s", name);
    } else {
        char link[64], at[PATH_MAX];
        if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, at, sizeof at - 1);
        if (length <= 0) return NULL;
        at[length] = 0;
        snprintf(joined, sizeof joined, "%s/%s", at, name);
    }
    size_t end = strlen(joined);
    while (end > 1 && joined[end - 1] == '/') joined[--end] = 0;
    char *slash = strrchr(joined, '/');
    if (!slash || strlen(slash + 1) > NAME_MAX) return NULL;
    strcpy(base, slash + 1);
    *slash = 0;
    if (!realpath(joined[0] ? joined : "/", parent)) return NULL;
    if (strlen(parent) + strlen(base) + 2 > PATH_MAX) return NULL;
    stpcpy(stpcpy(stpcpy(into, parent), "/"), base);
    return below(into);
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
