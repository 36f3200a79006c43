/* Everything is drawn anew a few times a second; ncurses sends only what changed. Sections of the fleet page share the lines between them:
 * each gets a part of what it wants, and what one leaves over goes to the next.
 *
 * The selection follows the thing, not the line: a lane or job stays selected when the order changes.
 */
#include "node/cli/top_screen.h"

#include <curses.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cli/top_pages.h"

enum section { LANES, QUEUES, RUNNING, FAILURES, SECTIONS_COUNT };
enum page { PAGE_FLEET, PAGE_DEVICE, PAGE_QUEUE, PAGE_JOB, PAGE_HELP };
enum { ROWS_MAX = 1024, WIDTH_LEAST = 40, HEIGHT_LEAST = 10, SORTS_COUNT = 3, NAME_BYTES = 160 };
static const uint64_t SILENT_MS = 8000;

struct row { /* of a section: what it stands for */
    const struct watch_lane *lane;
    const struct watch_hand *hand;
    const struct watch_job *job;
    const struct watch_queue *queue;
    uint64_t key; /* what it is sorted by, largest first */
};

struct rows {
    struct row items[ROWS_MAX];
    size_t count;
};

struct top_screen {
    struct top_pen pen;
    bool typing;
    enum page page;
    enum section focus;
    unsigned sort[SECTIONS_COUNT];
    size_t selected[SECTIONS_COUNT], first[SECTIONS_COUNT];
    char selected_name[SECTIONS_COUNT][NAME_BYTES];
    char filter[48];
    char node[WATCH_ID_BYTES], tenant[WATCH_ID_BYTES], job[WATCH_ID_BYTES]; /* of the page */
    uint32_t gpu, priority;
    struct sha256 key; /* of a queue's page, as priority */
    struct rows rows[SECTIONS_COUNT];
    const struct watch *picture; /* lent, while drawing */
    SCREEN *terminal;            /* owned */
};

static const char *const sort_names[SECTIONS_COUNT][SORTS_COUNT] = {
    [LANES] = {"name", "busy", "waiting"},
    [QUEUES] = {"work", "waiting", "age"},
    [RUNNING] = {"age", "progress", "priority"},
    [FAILURES] = {"newest", "oldest", "newest"},
};

/* --- What there is to show --- */

static bool matches(const struct top_screen *s, const char *a, const char *b, const char *c) {
    return !s->filter[0] || (a && strstr(a, s->filter)) || (b && strstr(b, s->filter)) ||
           (c && strstr(c, s->filter));
}

static void add_row(struct rows *rows, struct row row) {
    if (rows->count < ROWS_MAX) {
        rows->items[rows->count++] = row;
    }
}

/* What stays the same when the order changes. */
static void name_row(char out[NAME_BYTES], const struct row *row) {
    char key[13];
    if (row->queue) {
        snprintf(out, NAME_BYTES, "%u %s", row->queue->priority,
                 pen_key_text(key, &row->queue->key));
    } else if (row->job) {
        snprintf(out, NAME_BYTES, "%s %s", row->job->tenant, row->job->job);
    } else if (row->hand) {
        snprintf(out, NAME_BYTES, "%s %s %u", row->hand->tenant, row->hand->job,
                 row->hand->partition);
    } else {
        snprintf(out, NAME_BYTES, "%s %u", row->lane->node, row->lane->gpu);
    }
}

/* Equal keys by name, so that the order does not dance. */
static int by_key(const void *a, const void *b) {
    const struct row *x = a, *y = b;
    char x_name[NAME_BYTES], y_name[NAME_BYTES];
    if (x->key != y->key) {
        return x->key < y->key ? 1 : -1;
    }
    name_row(x_name, x);
    name_row(y_name, y);
    return strcmp(x_name, y_name);
}

/* The row that was selected, wherever it is now; else the one at its place. */
static void find_selected(struct top_screen *s, enum section section) {
    const struct rows *rows = &s->rows[section];
    char name[NAME_BYTES];
    size_t *at = &s->selected[section];
    for (size_t i = 0; i < rows->count; i++) {
        name_row(name, &rows->items[i]);
        if (!strcmp(name, s->selected_name[section])) {
            *at = i;
            return;
        }
    }
    *at = *at < rows->count ? *at : rows->count ? rows->count - 1 : 0;
}

static void note_selected(struct top_screen *s) {
    const struct rows *rows = &s->rows[s->focus];
    if (s->selected[s->focus] < rows->count) {
        name_row(s->selected_name[s->focus], &rows->items[s->selected[s->focus]]);
    }
}

static void collect_lanes(struct top_screen *s) {
    for (size_t i = 0; i < s->picture->lanes_count; i++) {
        const struct watch_lane *lane = &s->picture->lanes[i];
        struct watch_minute m = watch_minute_of(lane);
        uint64_t waits = m.wall_ns - m.compute_ns - m.ns[LEDGER_WAIT_NO_WORK];
        uint64_t keys[SORTS_COUNT] = {s->picture->lanes_count - i, m.compute_ns, waits};
        if (matches(s, lane->node, lane->device, top_lane_state(&s->pen, lane))) {
            add_row(&s->rows[LANES], (struct row){.lane = lane, .key = keys[s->sort[LANES]]});
        }
        for (size_t k = 0; k < lane->hand_count && !top_lane_is_silent(&s->pen, lane); k++) {
            const struct watch_hand *hand = &lane->hand[k];
            char key[13];
            uint64_t order[SORTS_COUNT] = {hand->age_ns, hand->permille,
                                           UINT32_MAX - (uint64_t)hand->priority};
            if (matches(s, hand->job, hand->tenant, lane->node) ||
                matches(s, pen_key_text(key, &hand->key), NULL, NULL)) {
                add_row(&s->rows[RUNNING],
                        (struct row){.lane = lane, .hand = hand, .key = order[s->sort[RUNNING]]});
            }
        }
    }
}

static void collect(struct top_screen *s) {
    const struct watch_fleet *fleet = &s->picture->fleet;
    for (int i = 0; i < SECTIONS_COUNT; i++) {
        s->rows[i].count = 0;
    }
    collect_lanes(s);
    for (size_t i = 0; i < fleet->queues_count; i++) {
        const struct watch_queue *q = &fleet->queues[i];
        uint64_t keys[SORTS_COUNT] = {q->work_ns, q->partitions, q->oldest_ns};
        char key[13];
        if (matches(s, pen_key_text(key, &q->key), NULL, NULL)) {
            add_row(&s->rows[QUEUES], (struct row){.queue = q, .key = keys[s->sort[QUEUES]]});
        }
    }
    for (size_t i = 0; i < s->picture->jobs_count; i++) {
        const struct watch_job *job = &s->picture->jobs[i];
        if (job->failed && matches(s, job->job, job->tenant, job->reason)) {
            uint64_t key = s->sort[FAILURES] == 1 ? UINT64_MAX - job->last_ms : job->last_ms;
            add_row(&s->rows[FAILURES], (struct row){.job = job, .key = key});
        }
    }
    for (int i = 0; i < SECTIONS_COUNT; i++) {
        struct rows *rows = &s->rows[i];
        qsort(rows->items, rows->count, sizeof rows->items[0], by_key);
        find_selected(s, (enum section)i);
    }
}

/* --- The fleet page --- */

static void draw_head(struct top_screen *s, const char *server) {
    const struct watch_fleet *f = &s->picture->fleet;
    char wall[16];
    uint64_t done = 0, failed = 0, back = 0;
    for (size_t i = 0; i < s->picture->lanes_count; i++) {
        const struct watch_lane *lane = &s->picture->lanes[i];
        done += watch_counter(lane->counters, lane->counters_count, "jobs_done");
        failed += watch_counter(lane->counters, lane->counters_count, "jobs_failed");
        back += watch_counter(lane->counters, lane->counters_count, "jobs_given_back");
    }
    bool led = f->known && s->pen.now_ms < f->at_ms + SILENT_MS;
    pen_put(&s->pen, 0, TITLE, "bellows");
    const char *word = !f->known  ? "no coordinator heard"
                       : !led     ? "coordinator silent"
                       : f->ready ? "led by"
                                  : "reading:";
    pen_put(&s->pen, 8, led ? GOOD : BAD, "%s", word);
    pen_put(&s->pen, 9 + (int)strlen(word), PLAIN, "%s  %s", led ? f->leader : "", server);
    s->pen.line++;
    pen_put(&s->pen, 0, PLAIN,
            "lanes %u of %u open  jobs %u  queued %u  placed %u  running %u  backlog %s",
            f->lanes_open, f->lanes_known, f->jobs_open, f->queued, f->placed, f->running,
            pen_span_text(wall, f->backlog_wall_ns));
    s->pen.line++;
    pen_put(&s->pen, 0, PLAIN, "done %" PRIu64 "  failed %" PRIu64 "  given back %" PRIu64, done,
            failed, back);
    if (f->deadlines_at_risk) {
        pen_put(&s->pen, 44, BAD, "%u deadlines at risk", f->deadlines_at_risk);
    }
    if (s->filter[0] || s->typing) {
        pen_put(&s->pen, s->pen.width - 26, MOVING, "filter: %s%s", s->filter,
                s->typing ? "_" : "");
    }
    s->pen.line++;
}

static void draw_title(struct top_screen *s, enum section section, const char *columns) {
    static const char *const names[] = {"DEVICES", "QUEUES", "IN HAND", "FAILURES"};
    bool focused = s->focus == section;
    pen_put(&s->pen, 0, TITLE, "%s%s %zu%s", focused ? ">" : " ", names[section],
            s->rows[section].count, columns);
    pen_put(&s->pen, s->pen.width - 14, DIM, "by %s", sort_names[section][s->sort[section]]);
    s->pen.line++;
}

static void draw_lane(struct top_screen *s, const struct watch_lane *lane) {
    char name[32], bar[512];
    struct watch_minute m = watch_minute_of(lane);
    int fixed = 16 + 9 + 16 + 2 + 20, cells = s->pen.width - fixed;
    cells = cells < 8 ? 8 : cells > 200 ? 200 : cells;
    snprintf(name, sizeof name, "%.11s.%u", lane->node, lane->gpu);
    bool good = lane->state == 2 && !top_lane_is_silent(&s->pen, lane);
    pen_put(&s->pen, 1, PLAIN, "%-14s", name);
    pen_put(&s->pen, 16, good ? GOOD : BAD, "%-8s", top_lane_state(&s->pen, lane));
    pen_put(&s->pen, 25, PLAIN, "%-15s", top_lane_is_silent(&s->pen, lane) ? "" : lane->now);
    watch_bar(bar, (size_t)cells, &m);
    pen_bar(&s->pen, 41, bar);
    pen_put(&s->pen, 43 + cells, PLAIN, "%4" PRIu64 "%% %7" PRIu64 " %2u/%-2u",
            m.wall_ns ? m.compute_ns * 100 / m.wall_ns : 0,
            watch_counter(lane->counters, lane->counters_count, "jobs_done"), lane->depth,
            lane->depth_max);
}

static void draw_queue(struct top_screen *s, const struct watch_queue *q) {
    char key[13], oldest[16], work[16];
    pen_put(&s->pen, 1, PLAIN, "%-8s %-13s %7u waiting  oldest %-8s work %-8s %s",
            pen_priority_text(q->priority), pen_key_text(key, &q->key), q->partitions,
            pen_span_text(oldest, q->oldest_ns), q->work_ns ? pen_span_text(work, q->work_ns) : "?",
            q->label);
}

static void draw_failure(struct top_screen *s, const struct watch_job *job) {
    char age[16];
    uint64_t ms = s->pen.now_ms > job->last_ms ? s->pen.now_ms - job->last_ms : 0;
    pen_put(&s->pen, 1, PLAIN, "%-7s ago %-20.20s", pen_span_text(age, ms * 1000000), job->job);
    pen_put(&s->pen, 34, BAD, "%s", job->error[0] ? job->error : job->state);
    pen_put(&s->pen, 34 + (int)strlen(job->error[0] ? job->error : job->state) + 1, PLAIN, "%s",
            job->reason);
}

static void draw_row(struct top_screen *s, enum section section, const struct row *row) {
    switch (section) {
    case LANES:
        draw_lane(s, row->lane);
        break;
    case QUEUES:
        draw_queue(s, row->queue);
        break;
    case RUNNING:
        top_draw_hand(&s->pen, row->lane, row->hand);
        break;
    default:
        draw_failure(s, row->job);
    }
}

static void draw_section(struct top_screen *s, enum section section, size_t lines,
                         const char *columns) {
    struct rows *rows = &s->rows[section];
    size_t *first = &s->first[section], selected = s->selected[section];
    draw_title(s, section, columns);
    *first = selected < *first ? selected : *first;
    *first = lines && selected >= *first + lines ? selected - lines + 1 : *first;
    for (size_t i = *first; i < rows->count && i < *first + lines; i++) {
        draw_row(s, section, &rows->items[i]);
        if (s->focus == section && i == selected) {
            mvchgat(s->pen.line, 0, -1, A_REVERSE, 0, NULL);
        }
        s->pen.line++;
    }
}

/* Each section a quarter of the lines at first, then what the others leave. */
static void share_lines(size_t lines[SECTIONS_COUNT], const struct top_screen *s, size_t all) {
    size_t given = 0;
    for (int i = 0; i < SECTIONS_COUNT; i++) {
        size_t want = s->rows[i].count, part = all / SECTIONS_COUNT;
        lines[i] = want < part ? want : part;
        given += lines[i];
    }
    for (int i = 0; i < SECTIONS_COUNT; i++) {
        size_t more = s->rows[i].count - lines[i], left = all - given;
        more = more < left ? more : left;
        lines[i] += more;
        given += more;
    }
}

static void draw_legend(struct top_screen *s) {
    pen_put(&s->pen, 1, DIM,
            "# compute  ^ upload  f fetch  d decode  k key  p memory  x fenced  . idle");
    s->pen.line++;
}

static void draw_fleet(struct top_screen *s, const char *server) {
    size_t lines[SECTIONS_COUNT];
    draw_head(s, server);
    int all = s->pen.height - s->pen.line - SECTIONS_COUNT - 2; /* titles, legend, foot */
    share_lines(lines, s, all > 0 ? (size_t)all : 0);
    draw_section(s, LANES, lines[LANES], "  last minute: # compute, else why not");
    draw_legend(s);
    draw_section(s, QUEUES, lines[QUEUES], "");
    draw_section(s, RUNNING, lines[RUNNING], "  job, tenant, lane, stage, step, done, age");
    draw_section(s, FAILURES, lines[FAILURES], "  of the last quarter of an hour");
}

static void draw_page_device(struct top_screen *s) {
    for (size_t i = 0; i < s->picture->lanes_count; i++) {
        const struct watch_lane *lane = &s->picture->lanes[i];
        if (lane->gpu == s->gpu && !strcmp(lane->node, s->node)) {
            top_draw_device(&s->pen, lane);
            return;
        }
    }
    pen_put(&s->pen, 0, BAD, "%s.%u is not heard of", s->node, s->gpu);
}

/* --- Keys --- */

static void look_into(struct top_screen *s) {
    const struct rows *rows = &s->rows[s->focus];
    if (s->page != PAGE_FLEET || rows->count == 0) {
        return;
    }
    const struct row *row = &rows->items[s->selected[s->focus]];
    if (s->focus == LANES) {
        snprintf(s->node, sizeof s->node, "%s", row->lane->node);
        s->gpu = row->lane->gpu;
        s->page = PAGE_DEVICE;
    } else if (s->focus == QUEUES) {
        s->priority = row->queue->priority;
        s->key = row->queue->key;
        s->page = PAGE_QUEUE;
    } else {
        snprintf(s->job, sizeof s->job, "%s", row->hand ? row->hand->job : row->job->job);
        snprintf(s->tenant, sizeof s->tenant, "%s",
                 row->hand ? row->hand->tenant : row->job->tenant);
        s->page = PAGE_JOB;
    }
}

static void type_filter(struct top_screen *s, int key) {
    size_t len = strlen(s->filter);
    if (key == '\n' || key == KEY_ENTER) {
        s->typing = false;
    } else if (key == 27) {
        s->typing = false;
        s->filter[0] = 0;
    } else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && len) {
        s->filter[len - 1] = 0;
    } else if (key > ' ' && key < 0x7f && len + 1 < sizeof s->filter) {
        s->filter[len] = (char)key;
        s->filter[len + 1] = 0;
    }
}

static void select_row(struct top_screen *s, int by) {
    size_t count = s->rows[s->focus].count, *at = &s->selected[s->focus];
    if (by < 0) {
        size_t back = (size_t)-by;
        *at = *at > back ? *at - back : 0;
    } else if (count) {
        *at = *at + (size_t)by < count ? *at + (size_t)by : count - 1;
    }
    note_selected(s);
}

/* False: leave. */
static bool obey(struct top_screen *s, int key) {
    if (s->typing) {
        type_filter(s, key);
        return true;
    }
    switch (key) {
    case 'q':
        return false;
    case '\t':
        s->focus = (enum section)((s->focus + 1) % SECTIONS_COUNT);
        break;
    case KEY_BTAB:
        s->focus = (enum section)((s->focus + SECTIONS_COUNT - 1) % SECTIONS_COUNT);
        break;
    case KEY_UP:
    case 'k':
        select_row(s, -1);
        break;
    case KEY_DOWN:
    case 'j':
        select_row(s, 1);
        break;
    case KEY_PPAGE:
        select_row(s, -10);
        break;
    case KEY_NPAGE:
        select_row(s, 10);
        break;
    case '\n':
    case KEY_ENTER:
        look_into(s);
        break;
    case 27:
    case KEY_LEFT:
        s->filter[0] = s->page == PAGE_FLEET ? 0 : s->filter[0];
        s->page = PAGE_FLEET;
        break;
    case 's':
        s->sort[s->focus] = (s->sort[s->focus] + 1) % SORTS_COUNT;
        break;
    case '/':
        s->typing = true;
        break;
    case '?':
    case 'h':
        s->page = s->page == PAGE_HELP ? PAGE_FLEET : PAGE_HELP;
        break;
    default:
        break;
    }
    return true;
}

/* --- Life --- */

enum err top_screen_open(struct top_screen **out, bool colour, const char *filter) {
    const char *term = getenv("TERM");
    REQUIRE(isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term && strcmp(term, "dumb") != 0,
            E_USAGE, "this is no terminal to draw on; `bellows top --once` prints one picture");
    AUTO(top_screen_close) struct top_screen *s = NULL;
    TRY(mem_new(&s, 1, sizeof *s));
    setlocale(LC_ALL, "");
    s->terminal = newterm(NULL, stdout, stdin);
    REQUIRE(s->terminal, E_USAGE, "the terminal \"%s\" is not known here; set TERM, or use --once",
            term);
    s->pen.colour = colour && has_colors();
    if (s->pen.colour) {
        start_color();
        use_default_colors();
        init_pair(GOOD, COLOR_GREEN, -1);
        init_pair(MOVING, COLOR_CYAN, -1);
        init_pair(WAITING, COLOR_YELLOW, -1);
        init_pair(BAD, COLOR_RED, -1);
    }
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    snprintf(s->filter, sizeof s->filter, "%s", filter ? filter : "");
    *out = TAKE(s);
    return OK;
}

void top_screen_close(struct top_screen **s) {
    if (*s) {
        if ((*s)->terminal) {
            endwin();
            delscreen((*s)->terminal);
        }
        mem_free_ptr(s);
    }
}

static void draw(struct top_screen *s, const char *server) {
    erase();
    s->pen.line = 0;
    getmaxyx(stdscr, s->pen.height, s->pen.width);
    if (s->pen.width < WIDTH_LEAST || s->pen.height < HEIGHT_LEAST) {
        pen_put(&s->pen, 0, PLAIN, "%dx%d is too small", s->pen.width, s->pen.height);
        refresh();
        return;
    }
    s->pen.height--; /* the foot */
    switch (s->page) {
    case PAGE_FLEET:
        draw_fleet(s, server);
        break;
    case PAGE_DEVICE:
        draw_page_device(s);
        break;
    case PAGE_QUEUE:
        top_draw_queue(&s->pen, s->picture, s->priority, &s->key);
        break;
    case PAGE_JOB:
        top_draw_job(&s->pen, s->picture, s->tenant, s->job);
        break;
    case PAGE_HELP:
        top_draw_help(&s->pen);
        break;
    }
    s->pen.line = s->pen.height++;
    pen_put(&s->pen, 0, DIM, "%s",
            s->page == PAGE_FLEET
                ? "q leave  Tab section  up/down select  Enter look into  s sort  / filter  ? help"
                : "q leave  Esc back  ? help");
    refresh();
}

bool top_screen_step(struct top_screen *s, const struct watch *picture, const char *server,
                     unsigned wait_ms) {
    s->picture = picture;
    s->pen.now_ms = clock_unix_ns() / 1000000;
    collect(s);
    draw(s, server);
    timeout((int)wait_ms);
    int key = getch();
    return key == ERR || obey(s, key);
}
