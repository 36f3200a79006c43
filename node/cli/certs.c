/* OpenSSL does all of it; here stands only which extensions a certificate of each kind has:
 *
 *   authority   CA:TRUE, pathlen 0; signs certificates
 *   server      names of hosts; serverAuth, and clientAuth, as the servers of a cluster call each other
 *   client      the common name; clientAuth
 *
 * Serial numbers are random. Times begin five minutes ago, for clocks that differ.
 */
#include "node/cli/certs.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/transport/transport.h"

enum { PATH_BYTES = 4096, EARLIER_S = 300, DAY_S = 86400, HOLDERS_MAX = 10000 };

struct pair {
    EVP_PKEY *key;     /* owned */
    X509 *certificate; /* owned */
};

static void pair_done(struct pair *p) {
    EVP_PKEY_free(p->key);
    X509_free(p->certificate);
}

static void bio_free(BIO **b) {
    BIO_free(*b);
}

static enum err failed(const char *doing) {
    char text[160];
    ERR_error_string_n(ERR_get_error(), text, sizeof text);
    return err_set(E_INTERNAL, "%s: OpenSSL says %s", doing, text);
}

/* --- Files --- */

static enum err path_of(char out[PATH_BYTES], const char *dir, const char *name, const char *tail) {
    int len = snprintf(out, PATH_BYTES, "%s/%s.%s", dir, name, tail);
    REQUIRE(len > 0 && len < PATH_BYTES, E_USAGE, "the folder's name is too long");
    return OK;
}

static enum err write_secretly(const char *dir, const char *name, const char *tail, BIO *pem) {
    char path[PATH_BYTES];
    char *text = NULL;
    long len = BIO_get_mem_data(pem, &text);
    TRY(path_of(path, dir, name, tail));
    REQUIRE(chmod(path, 0600) == 0 || errno == ENOENT, E_IO, "%s: %s", path, strerror(errno));
    mode_t before = umask(0077);
    enum err code = file_write_all(path, bytes_of(text, (size_t)len));
    umask(before);
    return code;
}

static enum err write_pair(const char *dir, const char *name, const struct pair *p) {
    AUTO(bio_free) BIO *key = BIO_new(BIO_s_secmem());
    AUTO(bio_free) BIO *certificate = BIO_new(BIO_s_mem());
    if (!key || !certificate ||
        PEM_write_bio_PKCS8PrivateKey(key, p->key, NULL, NULL, 0, NULL, NULL) != 1 ||
        PEM_write_bio_X509(certificate, p->certificate) != 1) {
        return failed("write a certificate");
    }
    TRY(write_secretly(dir, name, "key", key));
    return write_secretly(dir, name, "pem", certificate);
}

static enum err read_certificate(X509 **out, const char *path) {
    AUTO(bio_free) BIO *file = BIO_new_file(path, "r");
    REQUIRE(file, E_IO, "%s: %s; `bellows certs` makes certificates", path, strerror(errno));
    *out = PEM_read_bio_X509(file, NULL, NULL, NULL);
    REQUIRE(*out, E_FORMAT, "%s: no certificate in PEM form", path);
    return OK;
}

static enum err read_ca(struct pair *out, const char *dir) {
    char path[PATH_BYTES];
    TRY(path_of(path, dir, "ca", "pem"));
    REQUIRE(file_exists(path), E_IO, "%s: not there; `bellows certs ca` makes the authority", path);
    TRY(read_certificate(&out->certificate, path));
    TRY(path_of(path, dir, "ca", "key"));
    AUTO(bio_free) BIO *file = BIO_new_file(path, "r");
    REQUIRE(file, E_IO, "%s: %s; certificates are made where the authority's key is", path,
            strerror(errno));
    out->key = PEM_read_bio_PrivateKey(file, NULL, NULL, NULL);
    REQUIRE(out->key, E_FORMAT, "%s: no private key in PEM form", path);
    REQUIRE(X509_check_private_key(out->certificate, out->key) == 1, E_FORMAT,
            "%s is not the key of ca.pem beside it", path);
    return OK;
}

static enum err check_free(const struct certs_wish *wish, const char *name) {
    char path[PATH_BYTES];
    TRY(path_of(path, wish->dir, name, "pem"));
    REQUIRE(wish->replace || !file_exists(path), E_USAGE,
            "%s is there already; --replace makes a new one with a new key", path);
    return OK;
}

/* --- Making one --- */

static bool set_serial(X509 *c) {
    BIGNUM *n = BN_new();
    bool ok = n && BN_rand(n, 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
              BN_to_ASN1_INTEGER(n, X509_get_serialNumber(c)) != NULL;
    BN_free(n);
    return ok;
}

static bool add_extension(X509 *c, X509 *issuer, int nid, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, c, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool ok = extension && X509_add_ext(c, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

struct kind {
    const char *constraints, *usage, *extended; /* extensions in OpenSSL's words; NULL: none */
    const char *hosts;
};

/* ca NULL: signs itself. */
static enum err make(struct pair *out, const struct pair *ca, const char *name, uint64_t days,
                     const struct kind *kind) {
    out->key = EVP_EC_gen("P-256");
    out->certificate = X509_new();
    X509 *c = out->certificate, *issuer = ca ? ca->certificate : c;
    if (!out->key || !c) {
        return failed("make a key");
    }
    X509_NAME *subject = X509_get_subject_name(c);
    bool ok = X509_set_version(c, X509_VERSION_3) == 1 && set_serial(c) &&
              X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name,
                                         -1, -1, 0) == 1 &&
              X509_set_issuer_name(c, X509_get_subject_name(issuer)) == 1 &&
              X509_gmtime_adj(X509_getm_notBefore(c), -EARLIER_S) &&
              X509_time_adj_ex(X509_getm_notAfter(c), (int)days, 0, NULL) &&
              X509_set_pubkey(c, out->key) == 1 &&
              add_extension(c, issuer, NID_subject_key_identifier, "hash") &&
              add_extension(c, issuer, NID_authority_key_identifier, "keyid") &&
              add_extension(c, issuer, NID_basic_constraints, kind->constraints) &&
              add_extension(c, issuer, NID_key_usage, kind->usage) &&
              (!kind->extended || add_extension(c, issuer, NID_ext_key_usage, kind->extended)) &&
              (!kind->hosts || add_extension(c, issuer, NID_subject_alt_name, kind->hosts)) &&
              X509_sign(c, ca ? ca->key : out->key, EVP_sha256()) != 0;
    return ok ? OK : failed("make a certificate");
}

enum err certs_make_ca(const struct certs_wish *wish) {
    AUTO(pair_done) struct pair p = {0};
    char name[64];
    static const struct kind kind = {.constraints = "critical,CA:TRUE,pathlen:0",
                                     .usage = "critical,keyCertSign,cRLSign"};
    mode_t before = umask(0077);
    enum err code = dir_make(wish->dir);
    umask(before);
    TRY(code);
    TRY(check_free(wish, "ca"));
    snprintf(name, sizeof name, "bellows authority %llu",
             (unsigned long long)(clock_unix_ns() / 1000000000));
    TRY(make(&p, NULL, name, wish->days, &kind));
    return write_pair(wish->dir, "ca", &p);
}

static enum err add_host(struct text *out, const char *host) {
    unsigned char address[16];
    bool is_address = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address);
    REQUIRE(host[0] && strlen(host) < 254 && !strpbrk(host, ", \t\n\\\"="), E_USAGE,
            "\"%.80s\" is no host name or address", host);
    text_addf(out, "%s%s:%s", out->len ? "," : "", is_address ? "IP" : "DNS", host);
    if (is_address) { /* some clients compare addresses with the names only */
        text_addf(out, ",DNS:%s", host);
    }
    return OK;
}

enum err certs_make_server(const struct certs_wish *wish, const char *const *hosts,
                           size_t hosts_count) {
    AUTO(pair_done) struct pair ca = {0}, p = {0};
    AUTO(text_free) struct text names = {0};
    REQUIRE(hosts_count <= CERTS_HOSTS_MAX, E_USAGE, "%zu host names, at most %d allowed",
            hosts_count, CERTS_HOSTS_MAX);
    for (size_t i = 0; i < hosts_count; i++) {
        TRY(add_host(&names, hosts[i]));
    }
    TRY(text_done(&names));
    TRY(check_free(wish, "server"));
    TRY(read_ca(&ca, wish->dir));
    struct kind kind = {.constraints = "critical,CA:FALSE",
                        .usage = "critical,digitalSignature",
                        .extended = "serverAuth,clientAuth",
                        .hosts = names.ptr};
    TRY(make(&p, &ca, "bellows server", wish->days, &kind));
    return write_pair(wish->dir, "server", &p);
}

enum err certs_make_client(const struct certs_wish *wish, const struct role_holder *holder) {
    AUTO(pair_done) struct pair ca = {0}, p = {0};
    char name[ROLE_TEXT_BYTES];
    static const struct kind kind = {.constraints = "critical,CA:FALSE",
                                     .usage = "critical,digitalSignature",
                                     .extended = "clientAuth"};
    role_holder_text(name, holder);
    TRY(check_free(wish, name));
    TRY(read_ca(&ca, wish->dir));
    TRY(make(&p, &ca, name, wish->days, &kind));
    return write_pair(wish->dir, name, &p);
}

/* --- Looking --- */

static int by_name(const void *a, const void *b) {
    char x[ROLE_TEXT_BYTES], y[ROLE_TEXT_BYTES];
    role_holder_text(x, a);
    role_holder_text(y, b);
    return strcmp(x, y);
}

enum err certs_holders(struct role_holder **holders, size_t *count, const char *dir) {
    AUTO(mem_free_ptr) struct role_holder *list = NULL;
    size_t found = 0;
    DIR *d = opendir(dir);
    REQUIRE(d, E_IO, "%s: %s", dir, strerror(errno));
    enum err code = mem_new(&list, HOLDERS_MAX, sizeof *list);
    for (struct dirent *e; code == OK && (e = readdir(d)) != NULL;) {
        char name[256];
        size_t len = strlen(e->d_name);
        if (len < 5 || strcmp(e->d_name + len - 4, ".pem") != 0) {
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(len - 4), e->d_name);
        if (role_holder_parse(&list[found], name) == OK && ++found == HOLDERS_MAX) {
            code = err_set(E_LIMIT, "%s holds more than %d certificates", dir, HOLDERS_MAX - 1);
        }
    }
    closedir(d);
    TRY(code);
    qsort(list, found, sizeof *list, by_name);
    *holders = TAKE(list);
    *count = found;
    return OK;
}

enum err certs_holder_of(struct role_holder *out, const char *cert_path) {
    char name[ROLE_TEXT_BYTES + 1];
    TRY(transport_certificate_name(name, sizeof name, cert_path));
    return role_holder_parse(out, name);
}

enum err certs_days_left(int *out, const char *cert_path) {
    X509 *certificate = NULL;
    int days = 0, seconds = 0;
    TRY(read_certificate(&certificate, cert_path));
    bool ok = ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) == 1;
    X509_free(certificate);
    REQUIRE(ok, E_FORMAT, "%s: its time of end cannot be read", cert_path);
    *out = days + (seconds > 0);
    return OK;
}
