/* fields.h - how to choose from the rows of job.def: macros that turn a cell into code, or into nothing.
 *
 * A cell is a word, perhaps with arguments; pasting another word in front of it makes a macro of it, one for each word
 * that may stand there, which says YES or NO and what else is wanted of the cell. */
#ifndef LIB_JOB_FIELDS_H
#define LIB_JOB_FIELDS_H

#include "lib/job/job.def"

/* For kinds of rows that are of no interest. */
#define JOB_NONE(...)

#define JOB_CODE_YES(...)     __VA_ARGS__
#define JOB_CODE_NO(...)      /* nothing */
#define JOB_CODE(answer, ...) JOB_CODE_##answer(__VA_ARGS__)
#define JOB_IF_(...)          JOB_CODE(__VA_ARGS__)

/* JOB_IF(QUESTION, cell, code): the code, if the answer is yes. Questions: */
#define JOB_IF(question, cell, ...) JOB_IF_(JOB_##question##_##cell, __VA_ARGS__)
/* (within the code of another JOB_IF: JOB_IF_AGAIN, because a macro is not expanded within itself) */
#define JOB_IF_AGAIN(question, cell, ...) JOB_AGAIN_(JOB_##question##_##cell, __VA_ARGS__)
#define JOB_AGAIN_(...)                   JOB_CODE_AGAIN(__VA_ARGS__)
#define JOB_CODE_AGAIN(answer, ...)       JOB_CODE_##answer(__VA_ARGS__)
/* VALUE: shown or line: the message has the value as it is */
#define JOB_VALUE_SINCE(minor)      YES
#define JOB_VALUE_MADE_SINCE(minor) NO
#define JOB_VALUE_NO                NO
/* SENT: shown or line: it is part of the message */
#define JOB_SENT_SINCE(minor)      YES
#define JOB_SENT_MADE_SINCE(minor) YES
#define JOB_SENT_NO                NO
/* COPIED: core of KEPT: the core's view and the record have the same; RESTORED: and it goes back */
#define JOB_COPIED_CORE       YES
#define JOB_COPIED_RESTORED   YES
#define JOB_COPIED_OWN        NO
#define JOB_COPIED_NO         NO
#define JOB_RESTORED_CORE     NO
#define JOB_RESTORED_RESTORED YES
#define JOB_RESTORED_OWN      NO
#define JOB_RESTORED_NO       NO
/* EVENT: core of ASKED: it is part of the core's event */
#define JOB_EVENT_CORE(type) YES
#define JOB_EVENT_NO         NO
/* PLAIN: option or member: one value, which is handed on as it is */
#define JOB_PLAIN_OPTION(place, type, about)                YES
#define JOB_PLAIN_OWN_OPTION(place, type, about)            NO
#define JOB_PLAIN_MEMBER(place, type, about)                YES
#define JOB_PLAIN_MEMBERS(place, type, name, number, about) NO
#define JOB_PLAIN_NO                                        NO
/* LINE: type: text without control characters */
#define JOB_LINE_BOOL        NO
#define JOB_LINE_UINT(limit) NO
#define JOB_LINE_STR(limit)  NO
#define JOB_LINE_LINE(limit) YES
#define JOB_LINE_STRS(limit) NO

/* Code by who may see the field: all says whether it is the owner or an administrator who asks. */
#define JOB_SEEN_ALL(all, value, empty)   (value)
#define JOB_SEEN_OWNER(all, value, empty) ((all) ? (value) : (empty))

/* JOB_DECLARE(cell, name): a member of a struct, for a cell that has a C type. */
#define JOB_TYPED_VALUE(type)                               YES, type
#define JOB_TYPED_CORE(type)                                YES, type
#define JOB_TYPED_MEMBER(place, type, about)                YES, type
#define JOB_TYPED_OPTION(place, type, about)                YES, type
#define JOB_TYPED_OWN_OPTION(place, type, about)            NO, void
#define JOB_TYPED_MEMBERS(place, type, name, number, about) NO, void
#define JOB_TYPED_OWN                                       NO, void
#define JOB_TYPED_NO                                        NO, void
#define JOB_DECLARE(cell, name)                             JOB_DECLARE_(JOB_TYPED_##cell, name)
#define JOB_DECLARE_(...)                                   JOB_DECLARE__(__VA_ARGS__)
#define JOB_DECLARE__(answer, type, name)                   JOB_CODE(answer, type name;)
/* JOB_CAST(cell, value): to that type. */
#define JOB_CAST(cell, value)           JOB_CAST_(JOB_TYPED_##cell, value)
#define JOB_CAST_(...)                  JOB_CAST__(__VA_ARGS__)
#define JOB_CAST__(answer, type, value) ((type)(value))

/* JOB_EMPTY(type): what stands for nothing in a message and in libelmer. */
#define JOB_EMPTY(type)     JOB_EMPTY_##type
#define JOB_EMPTY_NO        0
#define JOB_EMPTY_BOOL      false
#define JOB_EMPTY_UINT(max) 0
#define JOB_EMPTY_INT(max)  -1
#define JOB_EMPTY_STR(max)  ""
#define JOB_EMPTY_LINE(max) ""
#define JOB_EMPTY_STRS(max) ((struct wire_strs){0})

/* JOB_LIMIT(type): of a type that has one. */
#define JOB_LIMIT(type)       JOB_LIMIT_##type
#define JOB_LIMIT_LINE(limit) limit

/* ---- messages: F and L are those of whoever includes messages.def ---- */

#define JOB_WIRE_NO              F, BOOL, 0
#define JOB_WIRE_BOOL            F, BOOL, 0
#define JOB_WIRE_UINT(limit)     F, UINT, limit
#define JOB_WIRE_INT(limit)      F, INT, limit
#define JOB_WIRE_DOUBLES(limit)  F, DOUBLES, limit
#define JOB_WIRE_STR(limit)      F, STR, limit
#define JOB_WIRE_LINE(limit)     F, STR, limit
#define JOB_WIRE_STRS(limit)     F, STRS, limit
#define JOB_WIRE_LIST(of, limit) L, of, limit

#define JOB_SINCE_SINCE(minor)      YES, minor
#define JOB_SINCE_MADE_SINCE(minor) YES, minor
#define JOB_SINCE_NO                NO, 0

#define JOB_FIELD(name, type, since)                         JOB_FIELD_(JOB_WIRE_##type, JOB_SINCE_##since, name)
#define JOB_FIELD_(...)                                      JOB_FIELD__(__VA_ARGS__)
#define JOB_FIELD__(macro, kind, limit, answer, since, name) JOB_CODE(answer, macro(kind, name, limit, since))

#define JOB_SUBMIT_ASKED(name, type, core, since, ...)                       JOB_FIELD(name, type, since)
#define JOB_VIEW_ASKED(name, type, core, since, shown, ...)                  JOB_FIELD(name, type, shown)
#define JOB_VIEW_KEPT(name, type, record, core, column, shown, ...)          JOB_FIELD(name, type, shown)
#define JOB_VIEW_MADE(name, type, shown, ...)                                JOB_FIELD(name, type, shown)
#define JOB_RUNNING_ASKED(name, type, core, since, shown, line, ...)         JOB_FIELD(name, type, line)
#define JOB_RUNNING_KEPT(name, type, record, core, column, shown, line, ...) JOB_FIELD(name, type, line)
#define JOB_RUNNING_MADE(name, type, shown, line, ...)                       JOB_FIELD(name, type, line)

#define JOB_SUBMIT_FIELDS  JOB_FIELDS(JOB_SUBMIT_ASKED, JOB_NONE, JOB_NONE)
#define JOB_VIEW_FIELDS    JOB_FIELDS(JOB_VIEW_ASKED, JOB_VIEW_KEPT, JOB_VIEW_MADE)
#define JOB_RUNNING_FIELDS JOB_FIELDS(JOB_RUNNING_ASKED, JOB_RUNNING_KEPT, JOB_RUNNING_MADE)

/* ---- members of the core's structs ---- */

#define JOB_CORE_ASKED(name, type, core, ...)        JOB_DECLARE(core, name)
#define JOB_CORE_KEPT(name, type, record, core, ...) JOB_IF(COPIED, core, JOB_DECLARE(record, name))

#endif
