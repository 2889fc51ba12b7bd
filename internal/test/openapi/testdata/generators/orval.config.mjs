export default {
  minutes: { input: process.env.DOCUMENT, output: { target: "./orval/api.ts", client: "axios-functions" } },
};
