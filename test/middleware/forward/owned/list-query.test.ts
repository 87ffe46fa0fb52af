import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import {
  isCursor,
  type ListQuery,
  matches,
  readListQuery,
} from '../../../../lib/middleware/forward/owned/list-query.ts'

const FIRST_PAGE: ListQuery = {
  limit: 20,
  order: 'newest',
  cursor: undefined,
  backwards: false,
  filters: [],
  passedOn: '',
}
const FORWARD = ['after', 'after_id', 'page', 'pageToken']
const BACKWARD = ['before', 'before_id']
const LONGEST_KEY = 'k'.repeat(100)

const read = (query: string): ListQuery => readListQuery(new URLSearchParams(query))

describe('the query of a list', () => {
  const rows: [query: string, asked: Partial<ListQuery>][] = [
    ['', {}],
    ['limit=1', { limit: 1 }],
    ['limit=007', { limit: 7 }],
    ['limit=99', { limit: 99 }],
    ['limit=100', { limit: 100 }],
    ['limit=101', { limit: 100 }],
    ['limit=999999', { limit: 100 }],
    ['pageSize=7', { limit: 7 }],
    ['limit=7&pageSize=8', { limit: 8 }],
    ['order=asc', { order: 'oldest' }],
    ['order=desc', { order: 'newest' }],
    ['order=asc&order=desc', { order: 'newest' }],
    ...FORWARD.map((param): [string, Partial<ListQuery>] => [
      `${param}=a`,
      { cursor: { id: 'a', param }, backwards: false },
    ]),
    ...BACKWARD.map((param): [string, Partial<ListQuery>] => [
      `${param}=a`,
      { cursor: { id: 'a', param }, backwards: true },
    ]),
    ['after=', {}],
    ['before=', {}],
    ['after=&before=b', { cursor: { id: 'b', param: 'before' }, backwards: true }],
    ['after=a&before=', { cursor: { id: 'a', param: 'after' }, backwards: false }],
    [
      'model=m&purpose=',
      {
        filters: [
          ['model', 'm'],
          ['purpose', ''],
        ],
      },
    ],
    ['metadata[team]=red', { filters: [['metadata[team]', 'red']] }],
    [`metadata[${LONGEST_KEY}]=x`, { filters: [[`metadata[${LONGEST_KEY}]`, 'x']] }],
    [`metadata[${LONGEST_KEY}k]=x`, { passedOn: `?metadata%5B${LONGEST_KEY}k%5D=x` }],
    ['metadata[]=x', { passedOn: '?metadata%5B%5D=x' }],
    ['metadata=x', { passedOn: '?metadata=x' }],
    ['metadata[a][b]=x', { passedOn: '?metadata%5Ba%5D%5Bb%5D=x' }],
    ['x_metadata[a]=x', { passedOn: '?x_metadata%5Ba%5D=x' }],
    ['metadata[a]s=x', { passedOn: '?metadata%5Ba%5Ds=x' }],
    ['models=m&a_model=m', { passedOn: '?models=m&a_model=m' }],
    ['purposes=m&my_purpose=m', { passedOn: '?purposes=m&my_purpose=m' }],
    ['beta=true&include[]=b&include[]=a', { passedOn: '?beta=true&include%5B%5D=b&include%5B%5D=a' }],
    ['Limit=3&ORDER=asc&After=a', { passedOn: '?Limit=3&ORDER=asc&After=a' }],
    ['beta=&limit=3', { limit: 3, passedOn: '?beta=' }],
  ]
  for (const [query, asked] of rows)
    it(`is read: ${query.slice(0, 60) || 'none'}`, () => {
      assert.deepEqual(read(query), { ...FIRST_PAGE, ...asked })
    })

  for (const [query, param] of [
    ...['0', '00', '-1', '+1', '1.5', '', '1e2', '1000000', ' 1', '1 ', 'x1', '1x'].map(
      (value) => [`limit=${encodeURIComponent(value)}`, 'limit'] as const,
    ),
    ['pageSize=0', 'pageSize'],
    ['order=', 'order'],
    ['order=ASC', 'order'],
    ['order=ascending', 'order'],
    ['order=newest', 'order'],
    ['after=a&before=b', 'before'],
    ['before=b&after=a', 'after'],
    ['page=a&pageToken=a', 'pageToken'],
    ['after=a&after=a', 'after'],
  ] as const)
    it(`is refused: ${query}`, () => {
      assert.throws(
        () => read(query),
        (error) => {
          assert.ok(error instanceof GatewayError)
          assert.deepEqual([error.code, error.param], ['invalid_request', param])
          assert.ok(error.message.startsWith(`The query parameter "${param}" must be `), error.message)
          return true
        },
      )
    })

  it('has its cursors under the names of three protocols', () => {
    for (const param of [...FORWARD, ...BACKWARD]) assert.equal(isCursor(param), true, param)
    for (const param of ['', 'limit', 'order', 'After', 'cursor', 'page_token', 'model'])
      assert.equal(isCursor(param), false, param)
  })
})

describe('the resources that a list is narrowed to', () => {
  const THING = { model: 'm', purpose: '', size: 1, metadata: { team: 'red', size: 1 }, list: ['a'] }
  const rows: [filters: ListQuery['filters'], isIn: boolean][] = [
    [[], true],
    [[['model', 'm']], true],
    [[['model', 'M']], false],
    [[['model', '']], false],
    [[['purpose', '']], true],
    [[['absent', '']], false],
    [[['size', '1']], false],
    [[['metadata[team]', 'red']], true],
    [[['metadata[team]', 'blue']], false],
    [[['metadata[absent]', 'red']], false],
    [[['metadata[size]', '1']], false],
    [[['metadata', 'red']], false],
    [[['model[team]', 'red']], false],
    [[['absent[team]', 'red']], false],
    [[['list[0]', 'a']], false],
    [
      [
        ['model', 'm'],
        ['metadata[team]', 'red'],
      ],
      true,
    ],
    [
      [
        ['model', 'm'],
        ['metadata[team]', 'blue'],
      ],
      false,
    ],
    [
      [
        ['model', 'x'],
        ['metadata[team]', 'red'],
      ],
      false,
    ],
  ]
  for (const [filters, isIn] of rows)
    it(`have all members that are named: ${JSON.stringify(filters)}`, () => {
      assert.equal(matches(THING, filters), isIn)
    })
})
