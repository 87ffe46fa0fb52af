import { filled, MESSAGES, MIB, prompt, RESPONSES, type Row, times, withMessages } from './hostile-rows.ts'

const translated = (messages: string): string => withMessages(messages).replace('"chat"', '"message"')
const response = (items: string): string =>
  `{"model":"message","input":[${items},{"role":"user","content":"hi"}]}`

/** Bodies that are translated for their line. */
export const TRANSLATIONS: readonly Row[] = [
  // Translated.
  ...(
    [
      '\\n',
      '\\u0001',
      '\\"',
      '\\u0041',
      '\\ud800',
      '\\udc00\\ud83d',
      '\\ud83d\\ude00',
      '漢',
      'aB3xZ9',
    ] as const
  ).flatMap((unit): Row[] => [
    [`20 MiB of ${unit}, translated`, () => prompt(filled(unit)).replace('"chat"', '"message"')],
    [
      `20 MiB of ${unit}, translated from messages`,
      () => prompt(filled(unit)).replace('"chat"', '"completion"'),
      MESSAGES,
    ],
  ]),
  ...(['\\ud800', '\\ud83d\\ude00', '\\n'] as const).flatMap((unit): Row[] => [
    [
      `20 MiB of ${unit} as a response's input, translated`,
      () => `{"model":"message","input":"${filled(unit)}"}`,
      RESPONSES,
    ],
    [
      `20 MiB of ${unit} in the arguments of a tool, translated`,
      () =>
        translated(
          `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\\"a\\":\\"${filled(unit.replaceAll('\\', '\\\\'))}\\"}"}}]}`,
        ),
    ],
  ]),
  [
    '33,000 messages, translated',
    () =>
      withMessages(
        times(33_000, (i) => `{"role":"${i % 2 ? 'assistant' : 'user'}","content":"hi ${i}"}`),
      ).replace('"chat"', '"message"'),
  ],
  [
    '33,000 messages of one side, translated',
    () =>
      withMessages(times(33_000, (i) => `{"role":"user","content":"hi ${i}"}`)).replace(
        '"chat"',
        '"message"',
      ),
  ],
  [
    '24,000 tool calls, translated',
    () =>
      withMessages(
        `{"role":"assistant","tool_calls":[${times(24_000, (i) => `{"id":"c${i}","type":"function","function":{"name":"f","arguments":"{}"}}`)}]}`,
      ).replace('"chat"', '"message"'),
  ],
  [
    '16,000 tool results, translated',
    () =>
      withMessages(
        `{"role":"assistant","tool_calls":[${times(8_000, (i) => `{"id":"c${i}","type":"function","function":{"name":"f","arguments":"{}"}}`)}]},${times(8_000, (i) => `{"role":"tool","tool_call_id":"c${i}","content":"x"}`)}`,
      ).replace('"chat"', '"message"'),
  ],
  [
    '20,000 tool results, translated from messages',
    () =>
      withMessages(
        `{"role":"user","content":[${times(20_000, (i) => `{"type":"tool_result","tool_use_id":"t${i}","content":"x"}`)}]}`,
      ).replace('"chat"', '"completion"'),
    MESSAGES,
  ],
  [
    '20 MiB of arguments of a tool, translated',
    () =>
      withMessages(
        `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"[${filled('[],')}1]"}}]}`,
      ).replace('"chat"', '"message"'),
  ],
  [
    '20 MiB of a data URL, translated',
    () =>
      withMessages(
        `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,${filled('aB3xZ9')}"}}]}`,
      ).replace('"chat"', '"message"'),
  ],
  [
    '20 MiB of a broken data URL, translated',
    () =>
      withMessages(
        `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:${filled('image/;,')}"}}]}`,
      ).replace('"chat"', '"message"'),
  ],
  [
    '33,000 tool results, translated',
    () => translated(times(33_000, () => '{"role":"tool","tool_call_id":"c","content":"x"}')),
  ],
  [
    '16,000 tool results between texts, translated',
    () =>
      translated(
        times(
          16_000,
          () => '{"role":"tool","tool_call_id":"c","content":"x"},{"role":"user","content":"hi"}',
        ),
      ),
  ],
  [
    '40 thoughts of 20 MiB in all, each of all of them',
    () =>
      translated(
        `{"role":"assistant","content":"a","reasoning_content":"${filled('x', 10 * MIB)}","reasoning_details":[${times(40, (i) => `{"type":"reasoning.text","format":"anthropic-claude-v1","index":${i},"length":${(i % 2 ? -10 : 10) * MIB},"signature":"s"}`)}]}`,
      ),
  ],
  [
    '20,000 calls of a response, translated',
    () =>
      response(
        times(20_000, (i) => `{"type":"function_call","call_id":"c${i}","name":"f","arguments":"{}"}`),
      ),
    RESPONSES,
  ],
  [
    '30,000 texts of an assistant, translated',
    () => response(times(30_000, () => `{"role":"assistant","content":"${filled('x', 500)}"}`)),
    RESPONSES,
  ],
  [
    '30,000 thoughts of a response, translated',
    () =>
      response(
        times(
          30_000,
          () =>
            '{"type":"reasoning","summary":[],"encrypted_content":"reasoning_details:eyJkZXRhaWxzIjpbe31dfQ=="}',
        ),
      ),
    RESPONSES,
  ],
  [
    '20 MiB of encoded thoughts, translated',
    () =>
      response(
        `{"type":"reasoning","summary":[],"encrypted_content":"reasoning_details:${Buffer.from(`{"details":[${filled('{},', 14 * MIB)}{}]}`).toString('base64')}"}`,
      ),
    RESPONSES,
  ],
]
