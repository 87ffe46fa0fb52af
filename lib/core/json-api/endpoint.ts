import type { NextFunction, Request, Response, Router } from 'express'
import { z } from 'zod'
import { callOf, type Role } from '../call/index.ts'
import type { Tags } from '../catalog/index.ts'
import { jsonBody, readBody } from './json-body.ts'
import { setNoStore } from './no-store.ts'
import { readQuery, readTaggedQuery } from './query.ts'

/** An answer: JSON of a schema, or content of a media type. */
export interface Answer<Schema extends z.ZodType = z.ZodType> {
  readonly status: number
  readonly description: string
  /** The name of its schema in the OpenAPI document, and the schema. Absent: the upstream's JSON. */
  readonly schema?: readonly [name: string, schema: Schema]
  /** The media types. Defaults to JSON. */
  readonly media?: readonly string[]
}

/** Returns the answers of an endpoint that has one, with a named schema. */
export function answersWith<Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  status = 200,
): readonly [Answer<Schema>] {
  return [{ status, description: name, schema: [name, schema] }]
}

/** The part of an endpoint that clients must know. */
export interface EndpointDescription {
  /** Its name in the OpenAPI document. */
  readonly id: string
  readonly method: 'get' | 'post' | 'patch' | 'delete' | 'put'
  /** The path below the mount, with its parameters as `{name}`. */
  readonly path: string
  /** The path as Express writes it, if it is not `path` with `:name` for `{name}`. */
  readonly route?: string
  readonly summary: string
  /** The schema of the query. Absent: it takes no parameter. */
  readonly query?: z.ZodObject
  /** The schema of the body. Absent: it takes no member. */
  readonly body?: z.ZodType
  readonly answers: readonly Answer[]
}

/**
 * An endpoint of an API of our own. Its route, the validation of requests, the types of clients and its part of the OpenAPI
 * document come from this definition. `Parts` is what its handler works with, such as stores.
 */
export interface Endpoint<Parts> extends EndpointDescription {
  /** The role that an operator needs for it. Absent: it is for callers. */
  readonly role?: Role
  /** Whether its query may also have tags, such as `tag:team=search`. */
  readonly tagged?: boolean
  /** Returns the answer; undefined if it has sent one by itself, or the client is gone. */
  handle(
    request: EndpointRequest<unknown, unknown>,
    parts: Parts,
  ): object | undefined | Promise<object | undefined>
}

/** A request whose query and body are valid. */
export interface EndpointRequest<Query, Body> {
  readonly req: Request
  /** Its status is that of the first of the endpoint's answers; a handler may set another one. */
  readonly res: Response
  /** The parameter in its path; empty if the path has none. */
  readonly id: string
  readonly query: Query
  readonly tags: Tags | undefined
  readonly body: Body
}

/** The type of an answer, by its schema. If the schema allows further members, they have no type. */
export type AnswerOf<Schema extends z.ZodType> = Known<z.output<Schema>>

type Known<T> = T extends readonly (infer Item)[]
  ? readonly Known<Item>[]
  : T extends object
    ? { readonly [Name in keyof T as IsOpen<Name, T[Name]> extends true ? never : Name]: Known<T[Name]> }
    : T

/** Whether a member is the index signature that stands for further members. */
type IsOpen<Name, Value> = string extends Name ? (unknown extends Value ? true : false) : false

const NOTHING = z.strictObject({})
const NO_BODY = NOTHING.optional()

interface Definition<Parts, Schema extends z.ZodType, Query extends z.ZodObject, Body extends z.ZodType>
  extends Omit<Endpoint<Parts>, 'query' | 'body' | 'answers' | 'handle'> {
  readonly query?: Query
  readonly body?: Body
  readonly answers: readonly [Answer<Schema>, ...Answer<Schema>[]]
  handle(
    request: EndpointRequest<z.output<Query>, z.output<Body>>,
    parts: Parts,
  ): AnswerOf<Schema> | undefined | Promise<AnswerOf<Schema> | undefined>
}

/**
 * Returns a function that defines endpoints whose handlers work with the same parts. It checks that handlers return what the
 * schemas of their answers say.
 *
 * @example
 * const endpoint = endpointFor<{ store: ThingStore }>()
 * export const THING_ENDPOINTS = [
 *   endpoint({
 *     id: 'createThing',
 *     method: 'post',
 *     path: '/things',
 *     summary: 'Creates a thing',
 *     body: z.strictObject({ name: z.string() }),
 *     answers: answersWith('Thing', thing, 201),
 *     handle: ({ body }, { store }) => store.create(body.name),
 *   }),
 * ]
 */
export function endpointFor<Parts>() {
  return function endpoint<
    Schema extends z.ZodType,
    Query extends z.ZodObject = typeof NOTHING,
    Body extends z.ZodType = typeof NO_BODY,
  >(definition: Definition<Parts, Schema, Query, Body>): Endpoint<Parts> {
    return definition as Endpoint<Parts>
  }
}

/**
 * Adds the routes of endpoints to a router. Requests with parameters or members that an endpoint does not know are refused.
 *
 * @param partsOf returns what handlers work with, before the query and the body are validated.
 */
export function serveEndpoints<Parts>(
  router: Router,
  endpoints: readonly Endpoint<Parts>[],
  partsOf: (req: Request) => Parts,
): Router {
  for (const endpoint of endpoints) {
    const { method, query = NOTHING, body = NO_BODY, tagged = false, answers } = endpoint
    router[method](routeOf(endpoint), jsonBody, async (req, res) => {
      const parts = partsOf(req)
      const asked = tagged ? readTaggedQuery(req, query) : { query: readQuery(req, query), tags: undefined }
      const [id = ''] = Object.values(req.params)
      const request = { req, res, id: String(id), ...asked, body: readBody(req, body) }
      res.status(answers[0]?.status ?? 200)
      const answer = await endpoint.handle(request, parts)
      if (answer === undefined) return
      setNoStore(res)
      res.json(answer)
    })
  }
  return router
}

/** A middleware that refuses requests with a parameter or a member, as an endpoint without a query and a body does. */
export function refuseUnknown(req: Request, _res: Response, next: NextFunction): void {
  readQuery(req, NOTHING)
  readBody(req, NO_BODY)
  next()
}

/** Returns the path of an endpoint as Express writes it: `/keys/:id` for `/keys/{id}`. */
export function routeOf({ path, route = path.replaceAll(/\{(\w+)\}/g, ':$1') }: EndpointDescription): string {
  return route
}

/**
 * Returns what was looked up.
 *
 * @throws {GatewayError} `not_found` if there is nothing.
 */
export function orNotFound<T extends object | true>(req: Request, found: T | false | undefined): T {
  if (!found) throw callOf(req).refuse('not_found')
  return found
}
