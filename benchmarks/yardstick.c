/* Pişti for two in plain C: what the compiled engine's speed is measured against.

   The standard game, `Rules()`, one deal after another at every table, as `pisti_env/game.py` plays
   it: from the same decks and dealers (`pisti_env/shuffle.py`), with the same cards drawn to be
   played, and with the same things kept up to date. It knows no options and checks nothing. Prints
   plays a second, a checksum of all final scores, and the points of each seat in all.

   usage: yardstick TABLES STEPS SEED */

#define _POSIX_C_SOURCE 199309L

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    NUM_CARDS = 52,
    NUM_RANKS = 13,
    NUM_KINDS = 15,
    PLAYERS = 2,
    HAND_SIZE = 4,
    NUM_STARTERS = 4,
    STARTER = 3, /* its place in the deck, above the three face-down ones */
    NUM_PLAYS = NUM_CARDS - NUM_STARTERS,
    PACKET_PLAYS = PLAYERS * HAND_SIZE,
    ACE = 0,
    JACK = 10,
    TWO_OF_CLUBS = 1,
    TEN_OF_DIAMONDS = 22,
    TWO_OF_CLUBS_KIND = 13,
    TEN_OF_DIAMONDS_KIND = 14,
    NO_CARD = -1,
    NOBODY = -1,
    PISTI_POINTS = 10,
    JACK_PISTI_POINTS = 20,
    MAJORITY_POINTS = 3,
};

typedef struct {
    uint64_t sampler;                 /* state of what draws the cards to play */
    uint64_t num_deals;               /* dealt so far */
    int16_t points[PLAYERS];          /* without face-down starters, until the deal is scored */
    int16_t pile_points;              /* card points of the pile's face-up part */
    int8_t to_play;                   /* seat */
    int8_t dealer;                    /* seat */
    int8_t num_plays;                 /* in this deal so far */
    int8_t stock_start;               /* place in the deck of the next card to deal */
    int8_t pile_start;                /* the first play that lies on the pile */
    int8_t pile_size;                 /* face-down starters included */
    int8_t top;                       /* card, or NO_CARD on an empty table */
    int8_t starters_down;             /* 1 while the four starters lie under the pile */
    int8_t packet;                    /* from 1 */
    int8_t packet_pile_start;         /* pile_start when the packet was dealt */
    int8_t packet_starters_down;      /* starters_down when the packet was dealt */
    int8_t last_capturer;             /* seat or NOBODY */
    int8_t starters_taker;            /* the seat that captured the starters, or NOBODY */
    int8_t num_shown_jacks;           /* turned up before the starter */
    int8_t shown_jacks[NUM_STARTERS];
    int8_t knows_starters[PLAYERS];   /* 1 if the seat knows those face down */
    int8_t captured[PLAYERS];         /* cards */
    int8_t pistis[PLAYERS];           /* by equal rank, no jacks */
    int8_t jack_pistis[PLAYERS];      /* jack on jack */
    int8_t hand_sizes[PLAYERS];
    int8_t hands[PLAYERS][HAND_SIZE]; /* the first hand_sizes[seat] count */
    int8_t seen[NUM_KINDS];           /* cards put face up so far, per kind */
    int8_t plays[NUM_PLAYS];          /* cards, in order */
    int8_t deck[NUM_CARDS];           /* face-down starters, starter, stock, once turned up */
} Table;

static int8_t rank_of[NUM_CARDS], kind_of[NUM_CARDS], points_of[NUM_CARDS];

static void fill_card_tables(void)
{
    for (int card = 0; card < NUM_CARDS; card++) {
        int rank = card % NUM_RANKS;
        rank_of[card] = kind_of[card] = (int8_t)rank;
        points_of[card] = rank == ACE || rank == JACK;
    }
    kind_of[TWO_OF_CLUBS] = TWO_OF_CLUBS_KIND;
    points_of[TWO_OF_CLUBS] = 2;
    kind_of[TEN_OF_DIAMONDS] = TEN_OF_DIAMONDS_KIND;
    points_of[TEN_OF_DIAMONDS] = 3;
}

/* Random numbers. */

static const uint64_t GAMMA = 0x9E3779B97F4A7C15;
static const uint64_t DEALER_PURPOSE = (uint64_t)1 << 32;
static const uint64_t SAMPLER_DEAL = (uint64_t)1 << 63; /* in the place of a deal that never is */

static uint64_t mix(uint64_t state)
{
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
    return state ^ (state >> 31);
}

static uint64_t stream(uint64_t seed, uint64_t table, uint64_t deal, uint64_t purpose)
{
    uint64_t state = mix(seed + GAMMA);
    state = mix(state + table + GAMMA);
    state = mix(state + deal + GAMMA);
    return mix(state + purpose + GAMMA);
}

static uint32_t random_below(uint64_t *state, uint32_t bound)
{
    for (;;) {
        uint64_t product = (mix(*state += GAMMA) >> 32) * bound;
        uint32_t low = (uint32_t)product;
        if (low >= bound || low >= -bound % bound) /* the first is cheap and nearly always true */
            return (uint32_t)(product >> 32);
    }
}

static void shuffle(int8_t *deck, uint64_t state)
{
    for (int card = 0; card < NUM_CARDS; card++)
        deck[card] = (int8_t)card;
    for (int place = NUM_CARDS - 1; place > 0; place--) {
        uint32_t other = random_below(&state, (uint32_t)place + 1);
        int8_t card = deck[place];
        deck[place] = deck[other];
        deck[other] = card;
    }
}

/* The deal. */

static int turn_up_starter(Table *table)
{
    int8_t *deck = table->deck;
    table->num_shown_jacks = 0;
    for (int place = STARTER; place >= 0; place--) {
        int8_t card = deck[place];
        if (rank_of[card] != JACK) {
            for (int later = place; later < STARTER; later++)
                deck[later] = deck[later + 1];
            deck[STARTER] = card;
            return 1;
        }
        table->shown_jacks[table->num_shown_jacks++] = card;
    }
    return 0;
}

static void deal_packet(Table *table)
{
    table->packet++;
    table->packet_pile_start = table->pile_start;
    table->packet_starters_down = table->starters_down;
    for (int turn = 1; turn <= PLAYERS; turn++) {
        int seat = (table->dealer + turn) % PLAYERS;
        memcpy(table->hands[seat], table->deck + table->stock_start, HAND_SIZE);
        table->hand_sizes[seat] = HAND_SIZE;
        table->stock_start += HAND_SIZE;
    }
}

static void deal(Table *table, uint64_t seed, uint64_t number)
{
    uint64_t state = stream(seed, number, table->num_deals, DEALER_PURPOSE);
    uint64_t attempt = 0;
    table->dealer = (int8_t)random_below(&state, PLAYERS);
    do
        shuffle(table->deck, stream(seed, number, table->num_deals, attempt++));
    while (!turn_up_starter(table));
    table->num_deals++;

    table->to_play = (int8_t)(1 - table->dealer);
    table->num_plays = 0;
    table->stock_start = NUM_STARTERS;
    table->pile_start = 0;
    table->pile_size = NUM_STARTERS;
    table->top = table->deck[STARTER];
    table->pile_points = points_of[table->top];
    table->starters_down = 1;
    table->packet = 0;
    table->last_capturer = table->starters_taker = NOBODY;
    for (int seat = 0; seat < PLAYERS; seat++) {
        table->points[seat] = 0;
        table->captured[seat] = table->pistis[seat] = table->jack_pistis[seat] = 0;
        table->knows_starters[seat] = 0;
    }
    memset(table->seen, 0, sizeof table->seen);
    table->seen[kind_of[table->top]]++;
    table->seen[JACK] += table->num_shown_jacks;
    deal_packet(table);
}

/* The score. */

static void take_pile(Table *table, int seat)
{
    table->captured[seat] += table->pile_size;
    table->points[seat] += table->pile_points;
    if (table->starters_down) {
        table->starters_taker = (int8_t)seat;
        table->knows_starters[seat] = 1;
    }
    table->starters_down = 0;
    table->pile_start = table->num_plays;
    table->pile_size = 0;
    table->pile_points = 0;
    table->top = NO_CARD;
}

static void score_pisti(Table *table, int seat, int card, int top)
{
    if (rank_of[card] != JACK) {
        table->pistis[seat]++;
        table->points[seat] += PISTI_POINTS;
    } else if (rank_of[top] == JACK) {
        table->jack_pistis[seat]++;
        table->points[seat] += JACK_PISTI_POINTS;
    }
}

static void score_deal(Table *table)
{
    take_pile(table, table->last_capturer != NOBODY ? table->last_capturer : table->dealer);
    for (int place = 0; place < STARTER; place++)
        table->points[table->starters_taker] += points_of[table->deck[place]];
    for (int seat = 0; seat < PLAYERS; seat++)
        table->knows_starters[seat] = 1;
    if (table->captured[0] != table->captured[1])
        table->points[table->captured[1] > table->captured[0]] += MAJORITY_POINTS;
    table->to_play = NOBODY;
}

/* The play. */

static void take_from_hand(Table *table, int seat, int card)
{
    int8_t *hand = table->hands[seat];
    int slot = 0; /* found without a branch, for the processor could not guess where it goes */
    for (int held = HAND_SIZE - 1; held >= 0; held--)
        slot = hand[held] == card ? held : slot;
    hand[slot] = hand[--table->hand_sizes[seat]];
}

static void lay_on_pile(Table *table, int card)
{
    table->plays[table->num_plays++] = (int8_t)card;
    table->seen[kind_of[card]]++;
    table->top = (int8_t)card;
    table->pile_size++;
    table->pile_points += points_of[card];
}

static void play(Table *table, int card)
{
    int seat = table->to_play, top = table->top, size = table->pile_size;
    take_from_hand(table, seat, card);
    lay_on_pile(table, card);
    if (size > 0 && (rank_of[card] == JACK || rank_of[card] == rank_of[top])) {
        if (size == 1 && table->num_plays < NUM_PLAYS) /* the very last card makes no pişti */
            score_pisti(table, seat, card, top);
        take_pile(table, seat);
        table->last_capturer = (int8_t)seat;
    }
    table->to_play = (int8_t)(1 - seat);
    if (table->num_plays == NUM_PLAYS)
        score_deal(table);
    else if (table->num_plays % PACKET_PLAYS == 0)
        deal_packet(table);
}

/* The benchmark, the same as in yardstick.py. */

static int sample_card(Table *table)
{
    int seat = table->to_play;
    table->sampler = table->sampler * 6364136223846793005 + 1442695040888963407;
    return table->hands[seat][(table->sampler >> 32) * (uint64_t)table->hand_sizes[seat] >> 32];
}

static uint64_t digest(const Table *table, uint64_t number)
{
    uint64_t state = mix(number + GAMMA);
    state = mix(state + table->num_deals);
    for (int seat = 0; seat < PLAYERS; seat++) {
        state = mix(state + (uint64_t)table->points[seat]);
        state = mix(state + (uint64_t)table->captured[seat]);
        state = mix(state + (uint64_t)table->pistis[seat]);
        state = mix(state + (uint64_t)table->jack_pistis[seat]);
    }
    return state;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: yardstick TABLES STEPS SEED\n");
        return 2;
    }
    uint64_t num_tables = strtoull(argv[1], NULL, 10);
    uint64_t steps = strtoull(argv[2], NULL, 10);
    uint64_t seed = strtoull(argv[3], NULL, 10);
    Table *tables = calloc(num_tables, sizeof *tables);
    if (tables == NULL) {
        fprintf(stderr, "yardstick: no memory for %" PRIu64 " tables\n", num_tables);
        return 1;
    }
    fill_card_tables();
    for (uint64_t i = 0; i < num_tables; i++) {
        tables[i].sampler = stream(seed, i, SAMPLER_DEAL, 0);
        deal(&tables[i], seed, i);
    }

    uint64_t checksum = 0;
    int64_t points[PLAYERS] = {0};
    double begun = seconds();
    for (uint64_t step = 0; step < steps; step++) {
        for (uint64_t i = 0; i < num_tables; i++) {
            Table *table = &tables[i];
            play(table, sample_card(table));
            if (table->to_play != NOBODY)
                continue;
            checksum += digest(table, i);
            for (int seat = 0; seat < PLAYERS; seat++)
                points[seat] += table->points[seat];
            deal(table, seed, i);
        }
    }
    double taken = seconds() - begun;

    printf("plays_per_second %.0f\n", (double)num_tables * (double)steps / taken);
    printf("checksum %016" PRIx64 "\n", checksum);
    printf("points %" PRId64 " %" PRId64 "\n", points[0], points[1]);
    free(tables);
    return 0;
}
