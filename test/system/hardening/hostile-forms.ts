import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { CHAT, FULL, filled, MIB, prompt, type Row, times, withMember } from './hostile-rows.ts'

/** Bodies that have to be unpacked, and those of endpoints with rules of their own. */
export const FORMS: readonly Row[] = [
  // Compressed.
  ['20 MiB of spaces, gzip', () => gzipSync(prompt(filled(' '))), CHAT, { 'content-encoding': 'gzip' }],
  [
    '20 MiB of empty objects, brotli',
    () => brotliCompressSync(withMember(`[${filled('{},')}1]`)),
    CHAT,
    { 'content-encoding': 'br' },
  ],
  [
    '200 MiB, zstd',
    () => zstdCompressSync(Buffer.alloc(200 * MIB, ' ')),
    CHAT,
    { 'content-encoding': 'zstd' },
  ],
  [
    'gzip of 20 MiB of garbage',
    () => Buffer.concat([gzipSync('x').subarray(0, 10), Buffer.alloc(FULL, 'x')]),
    CHAT,
    { 'content-encoding': 'gzip' },
  ],
  // Forms.
  ...(
    [
      [
        'a form of 1,000,000 parts',
        () => filled('--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n', 20_000_000),
      ],
      ['a form of boundaries only', () => filled('--b\r\n')],
      [
        'a form of almost boundaries',
        () => `--b\r\ncontent-disposition: form-data; name="prompt"\r\n\r\n${filled('\r\n--\r\n-')}`,
      ],
      [
        'a form of line ends',
        () => `--b\r\ncontent-disposition: form-data; name="prompt"\r\n\r\n${filled('\r\n')}`,
      ],
      ['a form of heads without end', () => `--b\r\n${filled('x: y\r\n')}`],
      [
        'a form with a name of 20 MiB',
        () => `--b\r\ncontent-disposition: form-data; name="${filled('a')}"\r\n\r\n1\r\n--b--\r\n`,
      ],
      [
        'a form with a head of backslashes',
        () => `--b\r\ncontent-disposition: form-data; name="${filled('\\', 8000)}\r\n\r\n1\r\n--b--\r\n`,
      ],
      [
        'a form with 90 parts of JSON',
        () =>
          `${times(90, (i) => `--b\r\ncontent-disposition: form-data; name="p${i}"\r\ncontent-type: application/json\r\n\r\n[${filled('{},', 200_000)}1]\r\n`, '')}--b--\r\n`,
      ],
      [
        'a form with a prompt of 20 MiB',
        () =>
          `--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nvideo\r\n--b\r\ncontent-disposition: form-data; name="prompt"\r\n\r\n${filled('aB3xZ9')}\r\n--b--\r\n`,
      ],
    ] as const
  ).map(
    ([name, body]): Row => [name, body, '/v1/videos', { 'content-type': 'multipart/form-data; boundary=b' }],
  ),
  // Other protocols.
  [
    'a task of 40,000 flags',
    () => `{"model":"video","content":[{"type":"text","text":"${filled('--rs 1 ', 300_000)}"}]}`,
    '/api/v3/contents/generations/tasks',
  ],
  [
    'a task of a flag and 20 MiB of spaces',
    () => `{"model":"video","content":[{"type":"text","text":"x --rs${filled(' ')}"}]}`,
    '/api/v3/contents/generations/tasks',
  ],
  [
    'a task of 20 MiB of dashes',
    () => `{"model":"video","content":[{"type":"text","text":"${filled(' --')}"}]}`,
    '/api/v3/contents/generations/tasks',
  ],
  [
    '45,000 texts of a task',
    () => `{"model":"video","content":[${times(45_000, () => '{"type":"text","text":"--rs 1"}')}]}`,
    '/api/v3/contents/generations/tasks',
  ],
]
