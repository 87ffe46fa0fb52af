import {
  filled,
  head,
  MESSAGES,
  objects,
  RESPONSES,
  type Row,
  said,
  shuffled,
  times,
  withMember,
  withMessages,
} from './hostile-rows.ts'

/** Bodies of many values, members and levels. */
export const VALUES: readonly Row[] = [
  // Values.
  ['400,000 numbers', () => withMember(`[${filled('1,', 800_000)}1]`)],
  ['10,000,000 numbers', () => withMember(`[${filled('1,')}1]`)],
  ['10,000,000 empty lists', () => withMember(`[${filled('[],')}1]`)],
  ['7,000,000 empty objects', () => withMember(`[${filled('{},')}1]`)],
  ['400,000 empty objects', () => withMember(`[${filled('{},', 1_200_000)}1]`)],
  ['7,000,000 empty texts', () => withMember(`[${filled('"",')}1]`)],
  ['numbers of forty digits', () => withMember(`[${filled(`${'7'.repeat(40)},`)}1]`)],
  ['a number of 20,000,000 digits', () => withMember(filled('7'))],
  ['7,000,000 bad messages', () => withMessages(`${filled('{},')}1`)],
  ['400,000 bad messages', () => withMessages(`${filled('{},', 1_200_000)}1`)],
  [
    'a bad message behind 33,000 good ones',
    () => withMessages(`${times(33_000, () => '{"role":"user","content":"hi"}')},1`),
  ],
  ['33,000 messages', () => withMessages(times(33_000, (i) => `{"role":"user","content":"hi ${i}"}`))],
  [
    '33,000 messages with a member more',
    () => withMessages(times(33_000, (i) => `{"role":"user","content":"hi","x${i}":[]}`)),
  ],
  [
    '33,000 messages of the other protocol',
    () => withMessages(times(33_000, () => '{"role":"user","content":[]}')),
    MESSAGES,
  ],
  [
    '20,000 tool results',
    () =>
      withMessages(
        `{"role":"user","content":[${times(20_000, (i) => `{"type":"tool_result","tool_use_id":"t${i}","content":"x"}`)}]}`,
      ),
    MESSAGES,
  ],
  [
    '20,000 thoughts',
    () =>
      withMessages(
        times(
          20_000,
          (i) =>
            `{"role":"${i % 2 ? 'user' : 'assistant'}","content":[{"type":"thinking","thinking":"x","signature":"y"}]}`,
        ),
      ),
    MESSAGES,
  ],
  [
    '45,000 tools',
    () => `{${head},${said},"tools":[${times(45_000, () => '{"type":"function","function":{}}')}]}`,
  ],
  ['400,000 tools that are none', () => `{${head},${said},"tools":[${filled('1,', 800_000)}1]}`],
  ['400,000 providers', () => `{${head},${said},"provider":{"only":[${filled('1,', 800_000)}1]}}`],
  [
    '10,000 members of a provider constraint',
    () => `{${head},${said},"provider":{${times(9_999, (i) => `"x${i}":1`)}}}`,
  ],
  [
    '49,000 items of a response',
    () => `{"model":"chat","input":[${times(49_000, () => '{"role":"user","content":"a"}')}]}`,
    RESPONSES,
  ],
  ['400,000 items that are none', () => `{"model":"chat","input":[${filled('1,', 800_000)}1]}`, RESPONSES],
  [
    '99,000 items with nothing in them',
    () => `{"model":"chat","input":[${filled('{"a":1},', 790_000)}{}]}`,
    RESPONSES,
  ],
  ['400,000 tokens', () => `{"model":"vectors","input":[${filled('1,', 800_000)}1]}`, '/v1/embeddings'],
  [
    '200,000 lists of tokens',
    () => `{"model":"vectors","input":[${filled('[1],', 800_000)}[1]]}`,
    '/v1/embeddings',
  ],
  ['400,000 texts', () => `{"model":"vectors","input":[${filled('"a",', 1_600_000)}"a"]}`, '/v1/embeddings'],
  [
    '400,000 documents',
    () => `{"model":"ranks","query":"${filled('q', 8000)}","documents":[${filled('"a",', 1_600_000)}"a"]}`,
    '/v1/rerank',
  ],
  [
    '400,000 prompts',
    () => `{"model":"chat","prompt":[${filled('"a",', 1_600_000)}"a"],"suffix":"b"}`,
    '/v1/completions',
  ],
  // Members.
  ['1,000,000 members of one object', () => withMember(`{${times(1_000_000, (i) => `"${i}":1`)}}`)],
  ['1,000,000 members without a name', () => withMember(`{${filled('"":1,', 5_000_000)}"":1}`)],
  ['1,000,000 members of the body', () => `{${head},${said},${times(1_000_000, (i) => `"k${i}":1`)}}`],
  ['9,900 members of the body', () => `{${head},${said},${times(9_900, (i) => `"k${shuffled(i)}":1`)}}`],
  ['20 MiB of the same member', () => `{${filled('"model":"chat",')}${said}}`],
  ['9,900 times the same member', () => `{${filled('"model":"chat",', 148_000)}${said}}`],
  ['450,000 objects of a name each', () => withMember(objects(450_000, 1, (i) => `k${i}`))],
  ['99,000 objects of a name each', () => withMember(objects(99_000, 1, (i) => `k${i}`))],
  ['9,000 objects of ten shuffled names', () => withMember(objects(9_000, 10, (i) => `k${shuffled(i)}`))],
  ['9 objects of 10,000 names', () => withMember(objects(9, 9_999, (i) => `k${shuffled(i)}`))],
  ['names of 200 bytes', () => withMember(objects(90, 999, (i) => `${'n'.repeat(200)}${shuffled(i)}`))],
  ['names of escapes', () => withMember(objects(90, 999, (i) => `\\u0041\\u0042${shuffled(i)}`))],
  ['names that are numbers', () => withMember(objects(9, 9_999, (i) => `${i * 400_000}`))],
  ['a name of 20 MiB', () => `{${head},${said},"${filled('k')}":1}`],
  ['a name of 20 MiB of escapes', () => `{${head},${said},"${filled('\\"')}":1}`],
  // Depth.
  ['100,000 levels', () => withMember('['.repeat(100_000) + ']'.repeat(100_000))],
  ['20 MiB of open lists', () => withMember(filled('['))],
  ['20 MiB of open objects', () => withMember(filled('{"a":'))],
  [
    '100 levels, again and again',
    () =>
      withMember(`[${times(980, (n) => `${times(100, (i) => `{"k${n}_${i}":`, '')}1${'}'.repeat(100)}`)}]`),
  ],
  [
    '100 levels of lists, again and again',
    () => withMember(`[${times(4_000, () => `${'['.repeat(100)}${']'.repeat(100)}`)}]`),
  ],
]
