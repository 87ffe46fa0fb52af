import {
  CHAT,
  FULL,
  filled,
  head,
  MESSAGES,
  objects,
  prompt,
  RESPONSES,
  type Row,
  said,
  shuffled,
  times,
  withMember,
  withMessages,
} from './hostile-rows.ts'

/** Texts of each kind that parsing, estimating and copying treat in their own way. */
const UNITS = {
  words: 'lorem ipsum ',
  'escaped quotes': '\\"',
  'escaped backslashes': '\\\\',
  'escaped letters': '\\u0041',
  'escaped pairs': '\\ud83d\\ude00',
  'line breaks': '\\n',
  'two bytes a letter': 'é',
  'three bytes a letter': '漢',
  'four bytes a letter': '😀',
  'base64-like': 'aB3xZ9',
  'changing capitals': 'aBcD',
  mixed: 'aA1!é漢 ',
  punctuation: '!?.,;:',
  spaces: ' ',
}

/** The texts that cost most, which the other endpoints get too. */
const COSTLY = ['escaped pairs', 'four bytes a letter', 'mixed'] as const

/** Bodies that are long texts, or nothing that JSON allows. */
export const TEXTS: readonly Row[] = [
  ...Object.entries(UNITS).map(([name, unit]): Row => [`20 MiB of ${name}`, () => prompt(filled(unit))]),
  ...COSTLY.flatMap((name): Row[] => [
    [`20 MiB of ${name}, as a message`, () => prompt(filled(UNITS[name])), MESSAGES],
    [
      `20 MiB of ${name}, as a response's input`,
      () => `{"model":"chat","input":"${filled(UNITS[name])}"}`,
      RESPONSES,
    ],
  ]),
  [
    '20 MiB of base64, in pieces',
    () =>
      withMessages(
        `{"role":"user","content":[${times(2000, () => `{"type":"text","text":"${filled('aB3xZ9', 10_000)}"}`)}]}`,
      ),
  ],
  ['texts with a key for idempotency', () => prompt(filled('漢')), CHAT, { 'idempotency-key': 'hold-1' }],
  [
    'members with a key for idempotency',
    () => withMember(objects(45, 2000, (i) => `k${shuffled(i)}`)),
    CHAT,
    { 'idempotency-key': 'hold-2' },
  ],
  // No JSON at all.
  ['20 MiB of white space', () => `{${filled(' ')}${head},${said}}`],
  ['20 MiB of white space behind', () => `{${head},${said}}${filled('\n')}`],
  ['20 MiB of commas', () => filled(',')],
  ['20 MiB of quotes', () => filled('"')],
  ['20 MiB of backslashes', () => `"${filled('\\')}`],
  ['20 MiB of zeros', () => Buffer.alloc(FULL)],
  ['20 MiB of broken UTF-8', () => Buffer.alloc(FULL, 0xe9)],
  ['a text that does not end', () => `{${head},"messages":[{"role":"user","content":"${filled('x')}`],
]
