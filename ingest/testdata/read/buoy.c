/*
 * Light characters of buoys.
 */
#include <stdio.h>

#define PERIOD(n) ((n) * 1000)

struct buoy {
	int period; /* in ms */
};

int flash(const struct buoy *b);

/* Waits for the next flash. */
static int
wait_for(struct buoy *b,
	int seconds)
{
	return b->period * seconds;
}

int flash(const struct buoy *b) {
	if (b) { printf("\"%d\"", b->period); }
	return 0;
}
