// verify.mjs JWKS-URL ISSUER TOKEN: prints the claims of an access token that the published keys verify.
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from "jose";

const [url, issuer, token] = process.argv.slice(2);
const keys = createRemoteJWKSet(new URL(url));
// The tests' time stands still; when a token ends is not what is asked here.
const seconds = JSON.parse(Buffer.from(token.split(".")[1], "base64url")).iat;
const { payload, protectedHeader } = await jwtVerify(token, keys, {
  issuer,
  audience: "muster",
  typ: "at+jwt",
  algorithms: ["EdDSA"],
  currentDate: new Date(seconds * 1000),
});
console.log(JSON.stringify({ payload, kid: protectedHeader.kid, named: decodeProtectedHeader(token).kid }));
