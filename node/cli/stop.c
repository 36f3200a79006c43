/* One pointer and one number, both set before or inside the handler; everything it does is async-signal-safe. */
#include "node/cli/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

static _Atomic(_Atomic int *) wanted_flag;
static volatile sig_atomic_t came;

static void on_signal(int number) {
    came = number;
    _Atomic int *flag = atomic_load(&wanted_flag);
    if (flag) {
        atomic_store(flag, 1);
    }
}

void stop_sets(_Atomic int *flag) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    atomic_store(&wanted_flag, flag);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction now;
        sigaction(numbers[i], NULL, &now);
        if (now.sa_handler != SIG_IGN) { /* nohup stays nohup */
            sigaction(numbers[i], &action, NULL);
        }
    }
}

int stop_signal(void) {
    return came;
}

void stop_as_signalled(void) {
    if (came) {
        fflush(NULL);
        signal(came, SIG_DFL);
        raise(came);
    }
}
