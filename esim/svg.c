#include "config.h"

#include "esim/svg.h"

#include <string.h>

#include "lib/base/str.h"

void svg_begin(FILE *out, double width, double height)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"sans-serif\" fill=\"#222\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            width, height, width, height);
}

void svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

/* Names of files are anything, XML is not. */
static void put_text(FILE *out, const char *text)
{
    bool valid = str_valid_utf8(text, strlen(text));

    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&')
            fputs("&amp;", out);
        else if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c < ' ' || c == 0x7f || (c > 0x7f && !valid))
            putc('?', out);
        else
            putc(c, out);
    }
}

void svg_text(FILE *out, double x, double y, enum svg_anchor anchor, double size, const char *text)
{
    static const char *const names[] = {"start", "middle", "end"};

    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" text-anchor=\"%s\">", x, y, size, names[anchor]);
    put_text(out, text);
    fputs("</text>\n", out);
}

void svg_text_up(FILE *out, double x, double y, double size, const char *text)
{
    fprintf(out,
            "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\" text-anchor=\"middle\" transform=\"rotate(-90 %.1f %.1f)\">",
            x, y, size, x, y);
    put_text(out, text);
    fputs("</text>\n", out);
}

void svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *color, double width)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%g\"/>\n", x1, y1,
            x2, y2, color, width);
}

void svg_dot(FILE *out, double x, double y, double radius, const char *color, bool filled)
{
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1.2\"/>\n", x, y,
            radius, filled ? color : "#fff", color);
}

void svg_arrow(FILE *out, double x, double y, double size, const char *color)
{
    fprintf(out, "<path d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\" fill=\"%s\"/>\n", x, y, x - size / 2, y + size,
            x + size / 2, y + size, color);
}

void svg_curve(FILE *out, const double *points, size_t count, const char *color, double width)
{
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" points=\"", color, width);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%.1f,%.1f", i > 0 ? " " : "", points[2 * i], points[2 * i + 1]);
    fputs("\"/>\n", out);
}

double svg_text_width(const char *text, size_t bytes, double size)
{
    size_t characters = 0;

    for (size_t i = 0; i < bytes; i++)
        characters += ((unsigned char)text[i] & 0xc0) != 0x80;
    return 0.62 * size * (double)characters;
}

size_t svg_fit(const char *text, double width, double size)
{
    size_t length = strlen(text), blank = 0, fit = 0;

    for (size_t i = 0; i < length && svg_text_width(text, i + 1, size) <= width; i++) {
        fit = i + 1;
        if (text[i] == ' ')
            blank = fit;
    }
    if (fit == length || fit == 0)
        return length;
    while (fit > 1 && ((unsigned char)text[fit] & 0xc0) == 0x80) /* not within a character */
        fit--;
    return blank > 0 ? blank : fit;
}
