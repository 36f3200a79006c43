/* prove SERVER KEY WITNESS VERIFICATION_KEY: one proof from the fleet, verified here, on standard output.
 *
 * A server with TLS wants BELLOWS_TLS_CA, BELLOWS_TLS_CERT and BELLOWS_TLS_KEY, as `bellows submit` does.
 *
 * cc prove.c -o prove $(pkg-config --cflags --libs bellows)
 */
#include <bellows/bellows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_text(const char *path) {
    FILE *f = fopen(path, "r");
    size_t len = 0, room = 1 << 20;
    char *text = f ? malloc(room + 1) : NULL;
    if (text) {
        len = fread(text, 1, room, f);
        text[len] = '\0';
    }
    if (f) {
        fclose(f);
    }
    return text;
}

int main(int argc, char **argv) {
    struct bellows *fleet = NULL;
    struct bellows_key *key = NULL;
    struct bellows_job *job = NULL;
    struct bellows_result *result = NULL;
    struct bellows_error error = {0};
    if (argc != 5) {
        fprintf(stderr, "usage: prove SERVER KEY WITNESS VERIFICATION_KEY\n");
        return BELLOWS_INPUT;
    }
    struct bellows_options options = {.server = argv[1],
                                      .tenant = getenv("BELLOWS_TENANT"),
                                      .ca_file = getenv("BELLOWS_TLS_CA"),
                                      .cert_file = getenv("BELLOWS_TLS_CERT"),
                                      .key_file = getenv("BELLOWS_TLS_KEY")};
    struct bellows_witness witness = {.path = argv[3]};
    char *vkey = read_text(argv[4]);
    int answer = bellows_open(&fleet, &options, &error);
    if (!answer) {
        answer = bellows_key_open(&key, argv[2], 0, &error);
    }
    if (!answer) {
        answer = bellows_submit(&job, fleet, key, &witness, 1, NULL, &error);
    }
    if (!answer) {
        fprintf(stderr, "job %s\n", bellows_job_id(job));
        answer = bellows_wait(&result, job, 60000, &error);
    }
    if (!answer) {
        answer = bellows_verify(vkey, bellows_result_public(result, 0),
                                bellows_result_proof(result, 0), 0, &error);
    }
    if (answer) {
        fprintf(stderr, "prove: %s: %s\n", error.name, error.detail);
    } else {
        puts(bellows_result_proof(result, 0));
    }
    bellows_result_free(&result);
    bellows_job_close(&job);
    bellows_key_close(&key);
    bellows_close(&fleet);
    free(vkey);
    return answer;
}
