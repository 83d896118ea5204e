/* script.c - job scripts.
 *
 * A script is read once, where it is submitted: its #ELMER lines are options, and its whole text goes with the job, as
 * a variable of the environment. So it is on elmer's disk before the job's id is printed, whoever looks at what a
 * submission says looks at the text too, others do not see it, and it is gone from the store when the job has ended.
 * On the job's host a line of shell puts it into a file of the job's temporary directory and executes its interpreter.
 *
 * #ELMER lines stand before the first line that is neither blank nor a comment. */
#include "config.h"

#include "client/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/common.h"
#include "lib/base/file.h"
#include "lib/base/str.h"

#define MARK            "#ELMER"
#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

/* $0 is the script's name, then its interpreter, that one's parameter, and the arguments. The directory is one for each
 * rank: several may be on one host. mkdir is found whatever the job's PATH says. */
static const char boot[] = "d=$ELMER_TMPDIR/script-$ELMER_RANK; (umask 077 && PATH=/usr/bin:/bin mkdir -p -- \"$d\" && "
                           "printf %s \"$" SCRIPT_VARIABLE "\" >\"$d/$0\") || exit 126; unset " SCRIPT_VARIABLE "; "
                           "i=$1 p=$2; shift 2; exec \"$i\" ${p:+\"$p\"} \"$d/$0\" \"$@\"";

void script_fini(struct script *script)
{
    for (size_t i = 0; i < script->ndirectives; i++) {
        for (int j = 0; j < script->directives[i].count; j++)
            free(script->directives[i].words[j]);
        free(script->directives[i].words);
    }
    free(script->directives);
    free(script->text);
    free(script->name);
    free(script->interpreter);
    free(script->parameter);
    free(script->command);
    *script = (struct script){0};
}

/* ---- lines ---- */

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t skip_blanks(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size && blank(text[at]))
        at++;
    return at;
}

static bool marked(const char *line, size_t size)
{
    const size_t length = strlen(MARK);

    return size >= length && memcmp(line, MARK, length) == 0 && (size == length || blank(line[length]));
}

/* Nearly such a line, but a comment: " #ELMER -n 2", "# ELMER -n 2", "#Elmer: -n 2". */
static bool nearly_marked(const char *line, size_t size)
{
    size_t at = skip_blanks(line, size);

    if (at == size || line[at++] != MARK[0])
        return false;
    at += skip_blanks(line + at, size - at);
    if (size - at < strlen(MARK + 1) || strncasecmp(line + at, MARK + 1, strlen(MARK + 1)) != 0)
        return false;
    at += strlen(MARK + 1);
    at += at < size && line[at] == ':';
    at += skip_blanks(line + at, size - at);
    return at < size && line[at] == '-' && !marked(line, size);
}

static int refuse(const struct script *script, unsigned line, const char *what)
{
    return usage_error("%s:%u: %s", script->place, line, what);
}

/* ---- words, as a shell has them: quotes and backslashes ---- */

static void add_word(struct directive *directive, char *word)
{
    directive->words = must(reallocarray(directive->words, (size_t)directive->count + 2, sizeof(*directive->words)));
    directive->words[directive->count++] = word;
    directive->words[directive->count] = NULL;
}

/* The word that begins at *at; NULL: a quote is open. */
static char *take_word(const char *line, size_t size, size_t *at)
{
    char *word = must(malloc(size + 1)), quote = '\0';
    size_t length = 0;

    for (; *at < size && (quote || !blank(line[*at])); (*at)++) {
        char c = line[*at];

        if (c == quote && quote)
            quote = '\0';
        else if (!quote && (c == '\'' || c == '"'))
            quote = c;
        else if (c == '\\' && quote != '\'' && *at + 1 < size && (!quote || strchr("\"\\", line[*at + 1])))
            word[length++] = line[++*at];
        else
            word[length++] = c;
    }
    word[length] = '\0';
    if (!quote)
        return word;
    free(word);
    return NULL;
}

static int add_directive(struct script *script, unsigned number, const char *line, size_t size)
{
    struct directive *directive;
    size_t at = strlen(MARK);

    if (line[size - 1] == '\r')
        return refuse(script, number, "the line ends with a carriage return, as in files from Windows: take them out");
    script->directives = must(reallocarray(script->directives, script->ndirectives + 1, sizeof(*script->directives)));
    directive = &script->directives[script->ndirectives++];
    *directive = (struct directive){.line = number};
    add_word(directive, must(strdup("esubmit"))); /* for getopt */
    for (at += skip_blanks(line + at, size - at); at < size && line[at] != '#';
         at += skip_blanks(line + at, size - at)) {
        char *word = take_word(line, size, &at);

        if (!word)
            return refuse(script, number, "a quote is open at the end of the line");
        add_word(directive, word);
    }
    return -1;
}

/* ---- the text ---- */

/* Interpreter and parameter, as the kernel takes them from the first line. */
static int take_interpreter(struct script *script)
{
    const char *line = script->text, *end = line + strcspn(line, "\n"), *word;

    if (strncmp(line, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        return refuse(script, 1, "the line begins with a byte order mark, as in files from Windows: take it out");
    if (strncmp(line, "#!", 2) != 0) {
        script->interpreter = must(strdup("/bin/sh"));
        script->parameter = must(strdup(""));
        return -1;
    }
    if (end[-1] == '\r')
        return refuse(script, 1, "the line ends with a carriage return, as in files from Windows: take them out");
    word = line + 2 + skip_blanks(line + 2, (size_t)(end - line - 2));
    while (end > word && blank(end[-1]))
        end--;
    for (line = word; line < end && !blank(*line);)
        line++;
    if (line == word)
        return refuse(script, 1, "no interpreter is named behind '#!'");
    script->interpreter = must(strndup(word, (size_t)(line - word)));
    line += skip_blanks(line, (size_t)(end - line));
    script->parameter = must(strndup(line, (size_t)(end - line)));
    return -1;
}

/* The #ELMER lines; one that nobody reads is told: it stands too late, or is written in another way. */
static int take_directives(struct script *script)
{
    bool open = true, told = false;
    unsigned number = 1;
    int result = -1;

    for (const char *line = script->text, *end; *line && result < 0; line = *end ? end + 1 : end, number++) {
        size_t size = strcspn(line, "\n"), first = skip_blanks(line, size);

        end = line + size;
        open = open && (first == size || line[first] == '#' || line[first] == '\r');
        if (open && nearly_marked(line, size))
            say("%s:%u: this line is not read: one with options begins with '%s ', in capital letters and at its begin",
                script->place, number, MARK);
        if (!marked(line, size))
            continue;
        if (open)
            result = add_directive(script, number, line, size);
        else if (!told)
            say("%s:%u: %s lines behind the first command are not read: move them up", script->place, number, MARK);
        told = told || !open;
    }
    return result;
}

static int check_text(const struct script *script)
{
    unsigned number = 1;

    if (strlen(script->text) != script->size)
        return usage_error("%s is no text: it has a byte that is 0", script->place);
    for (const char *line = script->text; *line; number++) {
        size_t size = strcspn(line, "\n");

        if (!str_valid_utf8(line, size))
            return refuse(script, number, "the line is not valid UTF-8; Elmer carries only UTF-8");
        line += size + (line[size] == '\n');
    }
    return -1;
}

static int check_size(const struct script *script)
{
    if (script->size <= SCRIPT_MAX_BYTES)
        return -1;
    return usage_error(
        "%s has more than %d bytes, and the text of a job script is kept with the job: put the work into "
        "a file of its own, and call that",
        script->place, SCRIPT_MAX_BYTES);
}

/* Has it a #ELMER line where one counts? Looks at what is in memory only, so a program costs nothing more. */
static bool is_script(const char *text)
{
    if (strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        text += strlen(BYTE_ORDER_MARK);
    for (const char *line = text; *line;) {
        size_t size = strcspn(line, "\n"), first = skip_blanks(line, size);

        if (marked(line, size))
            return true;
        if (first < size && line[first] != '#' && line[first] != '\r')
            return false;
        line += size + (line[size] == '\n');
    }
    return false;
}

static int complete(struct script *script)
{
    int result = check_size(script);

    if (result < 0)
        result = check_text(script);
    if (result < 0)
        result = take_interpreter(script);
    return result < 0 ? take_directives(script) : result;
}

static int read_script(struct script *script, int fd)
{
    return file_read_fd(fd, SCRIPT_MAX_BYTES, &script->text, &script->size);
}

/* The text of a file; relative to dir. false: there is none, or it cannot be a script. */
static bool read_file(struct script *script, const char *dir, const char *name)
{
    char *path = name[0] == '/' || !dir ? must(strdup(name)) : must(str_format("%s/%s", dir, name));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    bool done;

    free(path);
    if (fd < 0)
        return false; /* it may be there where the job runs */
    done = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && read_script(script, fd) == 0;
    close(fd);
    return done;
}

static bool names_interpreter(const struct script *script)
{
    return strncmp(script->text, "#!", 2) == 0;
}

int script_read_file(struct script *script, const char *dir, const char *command)
{
    const char *slash = strrchr(command, '/');
    bool done;

    if (!slash || !slash[1])
        return -1;
    done = read_file(script, dir, command);
    script->place = command;
    if (done && !is_script(script->text) && names_interpreter(script))
        (void)take_directives(script); /* there are none: only to tell of lines that would be */
    if (!done || !is_script(script->text)) {
        script_fini(script);
        return -1;
    }
    script->name = must(strdup(slash + 1));
    return complete(script);
}

bool script_has_lines(const char *dir, const char *name, bool *interpreter)
{
    struct script script = {0};
    bool has = read_file(&script, dir, name) && is_script(script.text);

    *interpreter = has && names_interpreter(&script);
    script_fini(&script);
    return has;
}

int script_read_again(struct script *script, const char *path)
{
    const char *slash = strrchr(path, '/');
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int result = fd < 0 ? -errno : read_script(script, fd);

    if (fd >= 0)
        close(fd);
    if (result < 0)
        return usage_error("the script %s cannot be read: %s", path, strerror(-result));
    script->place = path;
    script->name = must(strdup(slash && slash[1] ? slash + 1 : path));
    return complete(script);
}

int script_read_input(struct script *script)
{
    int result;

    script->place = "standard input";
    script->name = must(strdup("script"));
    if (isatty(STDIN_FILENO))
        say("reads the script from the terminal; Ctrl-D ends it");
    result = read_script(script, STDIN_FILENO);
    if (result < 0)
        return usage_error("standard input cannot be read: %s", strerror(-result));
    if (script->size == 0)
        return usage_error("standard input is empty: there is no script");
    return complete(script);
}

/* The name of a job is shorter than that of a file may be. */
void script_job_name(const struct script *script, char name[SCRIPT_JOB_NAME])
{
    size_t length = strlen(script->name);

    for (length = length < SCRIPT_JOB_NAME ? length : SCRIPT_JOB_NAME - 1;
         length > 0 && ((unsigned char)script->name[length] & 0xC0) == 0x80;)
        length--;
    memcpy(name, script->name, length);
    name[length] = '\0';
}

const char *const *script_command(struct script *script, char **arguments)
{
    size_t count = 0, own = 0;

    while (arguments[count])
        count++;
    script->command = must(calloc(count + 7, sizeof(*script->command)));
    script->command[own++] = "/bin/sh";
    script->command[own++] = "-c";
    script->command[own++] = boot;
    script->command[own++] = script->name;
    script->command[own++] = script->interpreter;
    script->command[own++] = script->parameter;
    for (size_t i = 0; i < count; i++)
        script->command[own++] = arguments[i];
    return script->command;
}

const char *script_of_command(const char *const *command, const char *const **arguments)
{
    for (size_t i = 0; i < 6; i++)
        if (!command[i])
            return NULL;
    if (strcmp(command[0], "/bin/sh") != 0 || strcmp(command[1], "-c") != 0 || strcmp(command[2], boot) != 0)
        return NULL;
    *arguments = command + 6;
    return command[3];
}

bool script_is_foreign(const char *const *command)
{
    const char *const *arguments;

    return command[0] && command[1] && command[2] && strcmp(command[0], "/bin/sh") == 0 &&
           strcmp(command[1], "-c") == 0 && strstr(command[2], "$" SCRIPT_VARIABLE) &&
           !script_of_command(command, &arguments);
}
