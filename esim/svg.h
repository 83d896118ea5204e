/* svg.h - a picture in SVG: lines, dots and words. Lengths are in pixels, y grows downwards. */
#ifndef ESIM_SVG_H
#define ESIM_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

void svg_begin(FILE *out, double width, double height);
void svg_end(FILE *out);
void svg_text(FILE *out, double x, double y, enum svg_anchor anchor, double size, const char *text);
/* Upwards. */
void svg_text_up(FILE *out, double x, double y, double size, const char *text);
void svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *color, double width);
/* A dot, or a ring. */
void svg_dot(FILE *out, double x, double y, double radius, const char *color, bool filled);
/* A triangle that points upwards. */
void svg_arrow(FILE *out, double x, double y, double size, const char *color);
/* x and y in turn. */
void svg_curve(FILE *out, const double *points, size_t count, const char *color, double width);
/* At most; nobody knows the reader's font. */
double svg_text_width(const char *text, size_t bytes, double size);
/* How many bytes of the text go into a line of that width: up to a blank if there is one. */
size_t svg_fit(const char *text, double width, double size);

#endif
